"""Streams of a `FeatureLearner`: exact or soft parts, new or continued."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from hcnet.archive.kinds import saveable
from hcnet.checkpoint import Checkpoint
from hcnet.images import Images
from hcnet.learning.learn import AUTO_FEATURES
from hcnet.names import ALGORITHMS
from hcnet.online.parts_stream import PartsShape, PartsStream
from hcnet.online.soft_stream import SoftStream
from hcnet.online.stream import Minibatch
from hcnet.soft.soft_learning import may_be_soft
from hcnet.validation.parameters import check_feature_size, check_learning, check_priors


def stream_of(
    learner: Any,
    batches: Iterator[Minibatch],
    forgetting: float,
    stream: PartsStream | SoftStream | None = None,
    keeper: Checkpoint | None = None,
) -> tuple[PartsStream | SoftStream, Iterator[Minibatch]]:
    """A new stream, or `stream` if it can continue with these minibatches, and all of them."""
    first = next(batches)
    if _is_soft(learner, first.images, stream):
        rng, options = saveable(learner._generator(keeper)), learner._soft_options()
        stream = stream or SoftStream(options, forgetting, rng)
        stream.configure(options, forgetting)
        return stream, itertools.chain([first], batches)
    assert not isinstance(stream, SoftStream)
    shape = learner._shape(first.images, known=stream and stream.shape.feature_size)
    engine = check_learning(learner, ready=True, algorithms=ALGORITHMS).engine
    shape = replace(shape, n_features=shape.n_features or AUTO_FEATURES)
    if stream is None:
        rng = saveable(learner._generator(keeper))
        stream = PartsStream(shape, check_priors(learner), engine, forgetting, rng)
    elif shape.n_channels != stream.shape.n_channels:
        channels = stream.shape.n_channels
        raise ValueError(
            f"X has {shape.n_channels} channels, but the stream so far had {channels}; pass "
            f"images with {channels}."
        )
    elif shape != stream.shape:
        raise ValueError(
            f"n_features, feature_size and border cannot change within a stream, which has "
            f"{stream.shape.n_features}, {stream.shape.feature_size} and "
            f"{stream.shape.border!r}; set them back, or start anew with fit_stream."
        )
    stream.configure(engine, forgetting)
    return stream, _fitting(itertools.chain([first], batches), shape)


def _is_soft(learner: Any, images: Images, stream: PartsStream | SoftStream | None) -> bool:
    """Whether the parts of a stream that begins with these images, or goes on, are soft."""
    if stream is None:
        if not may_be_soft(learner, images) or learner.algorithm == "soft":
            return bool(learner.algorithm == "soft")
        options = check_learning(learner, ready=True, algorithms=ALGORITHMS)
        return bool(learner._learn_soft(images, options, None).soft)
    soft = isinstance(stream, SoftStream)
    if learner.algorithm != "auto" and soft != (learner.algorithm == "soft"):
        raise ValueError(
            f"algorithm={learner.algorithm!r} cannot continue a stream of "
            f"{'soft' if soft else 'exact'} parts; set it back, or start anew with fit_stream."
        )
    return soft


def _fitting(batches: Iterable[Minibatch], shape: PartsShape) -> Iterator[Minibatch]:
    """The minibatches, each checked to hold the window of a feature."""
    for batch in batches:
        check_feature_size(shape.feature_size, batch.images.size, shape.border)
        yield batch
