"""The verdicts on a snapshot as JSON: sorted keys, bytes as int, schema version 1.

The schema is docs/snapshot.schema.json.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.snapshot.lives import BEFORE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.snapshot.balance import Balance, Share, SiteShare
    from oomdoctor.snapshot.fragmentation import Fragmentation, Pin
    from oomdoctor.snapshot.leaks import Site, Suspect
    from oomdoctor.snapshot.report import DeviceReport, SnapshotReport
    from oomdoctor.snapshot.stacks import Frame, Stack
    from oomdoctor.snapshot.what_if import Outcome

DIGITS = 6


def report_json(report: SnapshotReport) -> str:
    """Return the report as a JSON document."""
    return json.dumps(report_dict(report), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def report_dict(report: SnapshotReport) -> dict[str, object]:
    """Return the report as plain values."""
    return {
        "schema_version": 1,
        "oomdoctor": __version__,
        "settings": report.settings,
        "devices": [_device(one, report.stacks) for one in report.devices],
    }


def _device(device: DeviceReport, stacks: Sequence[Stack]) -> dict[str, object]:
    steps, replay, found = device.steps, device.replay, device.fragmentation
    return {
        "device": device.number,
        "events": device.events,
        "replay_equals_trace": None if replay is None else replay.equal,
        "peak_allocated_bytes": None if replay is None else replay.peak_allocated,
        "peak_reserved_bytes": None if replay is None else replay.peak_reserved,
        "before_recording_bytes": device.before_bytes,
        "failed_request_bytes": device.failed_bytes,
        "capacity_bytes": device.capacity_bytes,
        "steps": None if steps is None else {"shown_by": steps.shown_by, "ends": steps.ends},
        "leak_suspects": [_suspect(one) for one in device.suspects],
        "peak": _balance(device.peak, stacks),
        "failure": None if device.failure is None else _balance(device.failure, stacks),
        "fragmentation": None if found is None else _fragmentation(found, stacks),
        "outcomes": [outcome_dict(one) for one in device.outcomes],
    }


def frame_dict(frame: Frame | None) -> dict[str, object] | None:
    """Return a frame as plain values, None for none."""
    return None if frame is None else frame._asdict()


def _suspect(one: Suspect) -> dict[str, object]:
    return {
        "site": _site(one.site),
        "stack": [frame_dict(frame) for frame in one.stack.frames],
        "blocks": one.blocks,
        "live_bytes": one.live_bytes,
        "slope_bytes_per_step": round(one.slope_bytes, DIGITS),
        "slope_blocks_per_step": round(one.slope_blocks, DIGITS),
        "grown_bytes": one.grown_bytes,
        "same_size_bytes": one.same_size,
        "same_size_share": round(one.same_size_share, DIGITS),
        "peak_share": round(one.peak_share, DIGITS),
    }


def _site(site: Site) -> dict[str, object]:
    return {"frame": frame_dict(site.frame), "backward": site.backward, "block_bytes": site.size}


def _balance(balance: Balance, stacks: Sequence[Stack]) -> dict[str, object]:
    return {
        "before_event": balance.moment,
        "held_bytes": balance.held_bytes,
        "blocks": balance.blocks,
        "categories": [{"category": name, **_share(one)} for name, one in balance.categories],
        "sites": [_site_share(one, stacks) for one in balance.sites],
        "waiting": _share(balance.waiting),
        "waiting_sites": [_site_share(one, stacks) for one in balance.waiting_sites],
        "private_pools": [{"pool": pool, **_share(one)} for pool, one in balance.pools],
    }


def _share(share: Share) -> dict[str, object]:
    return {"held_bytes": share.held_bytes, "blocks": share.blocks}


def _site_share(one: SiteShare, stacks: Sequence[Stack]) -> dict[str, object]:
    return {
        "frame": frame_dict(one.site.frame),
        "category": one.category,
        "held_bytes": one.held_bytes,
        "blocks": one.blocks,
        "stack": [frame_dict(frame) for frame in stacks[one.stack].frames],
    }


def _fragmentation(found: Fragmentation, stacks: Sequence[Stack]) -> dict[str, object]:
    return {
        "before_event": found.moment,
        "exact": found.exact,
        "proven": found.proven,
        "request_bytes": found.request_bytes,
        "card_free_bytes": found.card_free_bytes,
        "reserved_bytes": found.reserved_bytes,
        "allocated_bytes": found.allocated_bytes,
        "waiting_bytes": found.waiting_bytes,
        "inactive_split_bytes": found.split_bytes,
        "free_segment_bytes": found.whole_bytes,
        "private_free_bytes": found.private_free_bytes,
        "holes": found.holes,
        "largest_hole_bytes": found.largest_hole_bytes,
        "pins": [_pin(one, stacks) for one in found.pins],
    }


def _pin(pin: Pin, stacks: Sequence[Stack]) -> dict[str, object]:
    life = pin.life
    return {
        "segment_address": pin.segment_address,
        "segment_bytes": pin.segment_bytes,
        "free_bytes": pin.free_bytes,
        "largest_hole_bytes": pin.largest_hole_bytes,
        "blocks": pin.blocks,
        "oldest_block": None
        if life is None
        else {
            "address": life.address,
            "block_bytes": life.size,
            "allocated_at_event": None if life.born == BEFORE else life.born,
            "frame": frame_dict(stacks[life.stack].first),
        },
    }


def outcome_dict(one: Outcome) -> dict[str, object]:
    """Return what came of the requests under some settings as plain values."""
    failure = one.failure
    return {
        "settings": one.settings,
        "capacity_bytes": one.capacity_bytes,
        "fits": failure is None,
        "failed_at_event": None if failure is None or failure.event < 0 else failure.event,
        "failed_request_bytes": None if failure is None else failure.requested_bytes,
        "peak_allocated_bytes": one.peak_allocated_bytes,
        "peak_reserved_bytes": one.peak_reserved_bytes,
        "allocation_retries": one.retries,
        "memory_fraction_assumed": one.fraction_set,
    }
