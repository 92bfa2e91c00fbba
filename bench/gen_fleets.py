#!/usr/bin/env python3
"""Writes the job files in fleets/ that dispatch is measured with (`scripts/bench dispatch`).

Plain, with a fixed seed: the same files every time. Run lengths are `estimate`s. `finish_within` is
always at least three run lengths and two minutes, and what `fresh` leaves beside the cooldown at least
six, so that a run that is merely longer than usual is no miss, and every miss is one of waiting.
"""
import random
from pathlib import Path

FOLDER = Path(__file__).parent / "fleets"
MINUTE, HOUR, DAY = 60, 3600, 86400


def text_of(seconds):
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def rounded(seconds, step):
    return max(step, int(seconds / step + 0.5) * step)


def length(dice, median, spread, most):
    """A run length in seconds: most are short, some are very long."""
    seconds = median * 2.718281828 ** dice.gauss(0, spread)
    return rounded(min(max(seconds, 10), most), 5)


def within(seconds, run):
    return text_of(rounded(max(seconds, 3 * run + 2 * MINUTE), MINUTE))


def job(name, run, **fields):
    lines = ["[[job]]", f'name = "{name}"', f'command = ["run", "{name}"]', f'estimate = "{text_of(run)}"']
    for field, value in fields.items():
        lines.append(f"{field} = {value}" if isinstance(value, int) else f'{field} = "{value}"')
    return "\n".join(lines)


INTERVALS = [(15 * MINUTE, 14), (30 * MINUTE, 16), (HOUR, 22), (2 * HOUR, 12), (4 * HOUR, 12),
             (6 * HOUR, 10), (12 * HOUR, 6), (DAY, 8)]


def interval(dice):
    return dice.choices([it for it, _ in INTERVALS], [weight for _, weight in INTERVALS])[0]


def crawl(dice, name, **fields):
    """Half `every`, half `fresh`; a third of the first must be complete soon after it is due."""
    every = interval(dice)
    run = length(dice, 75, 1.2, min(40 * MINUTE, every // 10))
    if dice.random() < 0.5:
        # Two runs lie between one good start and the next good end.
        cooldown = rounded(min(every * dice.uniform(0.4, 0.7), every - 6 * run - 2 * MINUTE), MINUTE)
        return job(name, run, fresh=text_of(every), cooldown=text_of(cooldown), **fields)
    if dice.random() < 0.35:
        return job(name, run, every=text_of(every), finish_within=within(every * dice.uniform(0.02, 0.15), run),
                   **fields)
    return job(name, run, every=text_of(every), **fields)


def crawlers():
    dice = random.Random(20260204)
    return [crawl(dice, f"crawl-{number:03}.example") for number in range(1, 361)]


def refresh(dice, name):
    run = length(dice, 25, 0.5, 60)
    minutes = dice.choice(["*/10", "*/15", "*/15", "*/30"])
    return job(name, run, cron=f"{minutes} * * * *", finish_within=within(dice.choice([4, 5, 8]) * MINUTE, run))


def hourly(dice, name):
    run = length(dice, 70, 0.8, 6 * MINUTE)
    minute = dice.choice([0, 0, 0, 5, 30])
    return job(name, run, cron=f"{minute} * * * *",
               finish_within=within(dice.choice([10, 15, 20, 45]) * MINUTE, run))


def batch(dice, name):
    """Long, and at the same few moments as everybody else's; only its end in some hours counts."""
    run = length(dice, 14 * MINUTE, 0.6, 40 * MINUTE)
    when, hours = dice.choice([("0 */2 * * *", 2), ("0 */3 * * *", 3), ("0 */4 * * *", 4), ("0 */4 * * *", 4),
                               ("30 */6 * * *", 6), ("0 0,8,16 * * *", 8)])
    return job(name, run, cron=when, finish_within=within(hours * HOUR * dice.uniform(0.6, 1.0), run))


def nightly(dice, name):
    run = length(dice, 12 * MINUTE, 0.7, 40 * MINUTE)
    return job(name, run, cron=f"0 {dice.choice([0, 1, 2, 3])} * * *",
               finish_within=within(dice.choice([2, 4, 6, 8]) * HOUR, run))


def morning(dice, name):
    """Read by somebody at nine."""
    run = length(dice, 4 * MINUTE, 0.6, 15 * MINUTE)
    return job(name, run, cron=f"0 {dice.choice([6, 7, 8])} * * *", finish_within=within(HOUR, run))


def reports():
    dice = random.Random(20260205)
    kinds = [("refresh", refresh, 25), ("hourly", hourly, 70), ("batch", batch, 60), ("nightly", nightly, 35),
             ("morning", morning, 30)]
    return [make(dice, f"{kind}-{number:03}") for kind, make, n in kinds for number in range(1, n + 1)]


def mixed():
    dice = random.Random(20260206)
    jobs = [crawl(dice, f"crawl-{number:03}.example") for number in range(1, 151)]
    jobs += [crawl(dice, f"browser-{number:03}.example", cost=2) for number in range(1, 31)]
    kinds = [("refresh", refresh, 10), ("hourly", hourly, 40), ("batch", batch, 20), ("nightly", nightly, 20)]
    jobs += [make(dice, f"{kind}-{number:03}") for kind, make, n in kinds for number in range(1, n + 1)]
    return jobs


def write(name, about, jobs):
    head = "".join(f"# {line}\n" for line in [*about, "Written by bench/gen_fleets.py, measured by `scripts/bench dispatch`."])
    (FOLDER / name).write_text(head + "\n" + "\n\n".join(jobs) + "\n")


def main():
    FOLDER.mkdir(exist_ok=True)
    write("crawlers.toml", [
        "A crawling team: 360 sites, each at its own interval from a quarter of an hour to a day. Most runs are",
        "short, some take over half an hour; some data is wanted soon after it is due, most is not.",
    ], crawlers())
    write("reports.toml", [
        "A data team: 220 reports, all by the clock. Short urgent ones at every full hour, beside long batches",
        "that come due at the same moments and have hours to be complete.",
    ], reports())
    write("mixed.toml", [
        "Both on one machine: 180 crawls, some of them in a browser that takes two units, and 90 reports by the",
        "clock.",
    ], mixed())


if __name__ == "__main__":
    main()
