"""Reports: everything about a model and some images in one HTML file that needs no network."""
