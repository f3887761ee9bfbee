"""A lossless codec for bilevel pages, which stands on soft parts."""
