#!/usr/bin/env python3
"""What cron has to do around changes of the clocks, worked out by brute force.

An oracle for the corpus test (crates/core/tests/dst_corpus.rs). It knows nothing of the product's
code: it looks at every minute of UTC within 26 hours on both sides of each change, asks `zoneinfo`
what the clocks on the wall showed, and applies two rules to what it saw.

* Vixie's day rule: day of month and day of week are OR, unless one of them begins with `*`.
* T2: an expression whose minute and hour fields both do not begin with `*` is wall-clock: what
  the clocks jumped over happens once, at the first instant after the jump, and what they show twice
  happens the first time only. Any other expression is elapsed-time: it happens whenever the clocks
  show a matching time.

Zone data comes from the `tzdata` package alone, never from the machine.

Output, one line each, fields separated by tabs:

    version  <release of the zone data>
    zone     <name>   <number of changes in 2020 to 2037>
    case     <class> <expression> <start> <end> <change> <zones, by comma> <expected, by comma>
    end      <number of changes> <number of zones with changes> <number of cases>

Instants are seconds since the epoch; the expected ones are seconds since `start`. A line stands for
one case per zone: zones whose clocks moved by the same amount at the same instant share it.
"""

import calendar
import importlib.resources
import multiprocessing
import os
import sys
import zlib
import zoneinfo
from datetime import date, datetime, timedelta, timezone

zoneinfo.reset_tzpath(to=[])

YEAR_FIRST, YEAR_LAST = 2020, 2037
# Changes outside those years that are odd enough to be worth having: a day that never was, and
# clocks that moved by quarters of an hour or stood on one while they moved.
CURIOSITIES = [
    ("Pacific/Apia", 2011, 2011),
    ("Asia/Kathmandu", 1985, 1986),
    ("Australia/Eucla", 2006, 2009),
    ("Antarctica/Casey", 2009, 2012),
    ("Asia/Pyongyang", 2015, 2018),
]
# Zones whose clocks never move must not be moved by us either: they are looked at when Europe's do.
QUIET_INSTANTS = [1774746000, 1792890000]

MINUTE, HOUR = 60, 3600
AROUND = 26 * HOUR
# No two changes of one zone lie closer together than this; the scan would miss a pair that does.
SCAN_STEP = 6 * HOUR
# A first pass begins at most this long before the change; it must be seen to know a second pass.
LOOK_BACK = 6 * HOUR

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


# ---------------------------------------------------------------- what an expression means


class Expression:
    """Five fields, as sets of numbers; days are asked one by one."""

    def __init__(self, text):
        minute, hour, self.dom, month, self.dow = text.split()
        self.minutes = number_set(minute, 0, 59)
        self.hours = number_set(hour, 0, 23)
        self.months = number_set(month, 1, 12, MONTHS)
        self.is_wall_clock = not minute.startswith("*") and not hour.startswith("*")
        self.days_are_or = not self.dom.startswith(("*", "?")) and not self.dow.startswith(("*", "?"))

    def has_day(self, day):
        if day.month not in self.months:
            return False
        by_dom = any(dom_item_has(item, day) for item in self.dom.split(","))
        by_dow = any(dow_item_has(item, day) for item in self.dow.split(","))
        return by_dom or by_dow if self.days_are_or else by_dom and by_dow


def number_set(field, low, high, names=()):
    return {number for item in field.split(",") for number in item_numbers(item, low, high, names)}


def item_numbers(item, low, high, names=()):
    def number(word):
        return names.index(word) + low if word in names else int(word)

    item, _, step = item.partition("/")
    if item in ("*", "?"):
        first, last = low, high
    else:
        first, _, last = item.partition("-")
        first = number(first)
        last = number(last) if last else first
    # `22-2` goes over midnight.
    if first > last:
        numbers = [*range(first, high + 1), *range(low, last + 1)]
    else:
        numbers = [*range(first, last + 1)]
    return numbers[:: int(step or 1)]


def dom_item_has(item, day):
    month_length = calendar.monthrange(day.year, day.month)[1]
    if item == "LW":
        return day.day == nearest_weekday(day.year, day.month, month_length)
    if item.endswith("W"):
        return day.day == nearest_weekday(day.year, day.month, int(item[:-1]))
    if item.startswith("L"):
        return day.day == month_length - int(item[2:] or 0)
    return day.day in item_numbers(item, 1, 31)


def nearest_weekday(year, month, day):
    """Monday to Friday nearest to the day, inside the month; 0 if the month has no such day."""
    month_length = calendar.monthrange(year, month)[1]
    if day > month_length:
        return 0
    candidates = [day, day - 1, day + 1, day - 2, day + 2]
    return next(d for d in candidates if 1 <= d <= month_length and calendar.weekday(year, month, d) < 5)


def dow_item_has(item, day):
    weekday = day.isoweekday() % 7
    if "#" in item:
        wanted, _, nth = item.partition("#")
        return weekday in weekdays_of(wanted) and (day.day - 1) // 7 + 1 == int(nth)
    if item[0].isdigit() and item.endswith("L"):
        month_length = calendar.monthrange(day.year, day.month)[1]
        return weekday in weekdays_of(item[:-1]) and day.day + 7 > month_length
    return weekday in weekdays_of(item)


def weekdays_of(item):
    # 0 and 7 are Sunday; a range may go over Saturday by either.
    high = 7 if "7" in item.partition("/")[0] else 6
    return {number % 7 for number in item_numbers(item, 0, high, WEEKDAYS)}


# ---------------------------------------------------------------- what the clocks showed


def offset_at(tz, instant):
    return int(datetime.fromtimestamp(instant, tz).utcoffset().total_seconds())


def year_start(year):
    return calendar.timegm((year, 1, 1, 0, 0, 0))


def changes(tz, year_first, year_last):
    """The instants at which the offset changes, with the offsets before and after."""
    found = []
    from_timestamp = datetime.fromtimestamp
    start = year_start(year_first)
    before = from_timestamp(start, tz).utcoffset()
    for instant in range(start + SCAN_STEP, year_start(year_last + 1) + 1, SCAN_STEP):
        after = from_timestamp(instant, tz).utcoffset()
        if after != before:
            low, high = instant - SCAN_STEP, instant
            while high - low > 1:
                middle = (low + high) // 2
                if from_timestamp(middle, tz).utcoffset() == before:
                    low = middle
                else:
                    high = middle
            found.append((high, int(before.total_seconds()), int(after.total_seconds())))
            before = after
    return found


def wall_row(since_start, wall):
    return since_start, wall // 1440, wall // 60 % 24, wall % 60


class Clocks:
    """Every minute that the clocks of a zone showed, or jumped over, around an instant."""

    def __init__(self, tz, change):
        self.start, self.end, self.change = change - AROUND, change + AROUND, change
        # Each row: seconds since the start, local day, hour, minute.
        self.shown, self.shown_again, self.jumped_over = [], [], []
        seen = set()
        previous = None
        for instant in range(self.start - LOOK_BACK, self.end, MINUTE):
            local = datetime.fromtimestamp(instant, tz)
            assert local.second == 0, f"{tz} is off by seconds at {instant}"
            # Minutes counted from the beginning of the calendar.
            wall = (local.toordinal() * 24 + local.hour) * 60 + local.minute
            again = wall in seen
            assert again == bool(local.fold), f"{tz} contradicts itself at {instant}"
            seen.add(wall)
            if instant >= self.start:
                since_start = instant - self.start
                (self.shown_again if again else self.shown).append(wall_row(since_start, wall))
                self.jumped_over += [wall_row(since_start, missed) for missed in range(previous + 1, wall)]
            previous = wall
        self.days = {row[1] for row in self.shown + self.shown_again + self.jumped_over}

    def expected(self, expression):
        days = {day for day in self.days if expression.has_day(date.fromordinal(day))}
        rows = [self.shown, self.jumped_over] if expression.is_wall_clock else [self.shown, self.shown_again]
        minutes, hours = expression.minutes, expression.hours
        # Times that were jumped over share one instant, perhaps with a time that was shown: a set.
        return sorted(
            {
                instant
                for some_rows in rows
                for instant, day, hour, minute in some_rows
                if minute in minutes and hour in hours and day in days
            }
        )


# ---------------------------------------------------------------- expressions that hit the change


def expressions(change, before, after):
    """Pairs of class and expression, made of the times that the change touches."""
    naive = datetime.fromtimestamp(change, timezone.utc).replace(tzinfo=None)
    low = naive + timedelta(seconds=min(before, after))
    high = naive + timedelta(seconds=max(before, after))
    if low == high:
        high = low + timedelta(hours=1)
    hour, minute = timedelta(hours=1), timedelta(minutes=1)
    middle = low + (high - low) // 2
    middle = middle.replace(second=0)
    last = high - minute
    # Instants that are alike in all years get different companions, the same in each run.
    turn = zlib.crc32(f"{change} {before} {after}".encode())

    def pick(n, *choices):
        return choices[(turn >> n) % len(choices)]

    def at(time):
        return f"{time.minute} {time.hour}"

    def span(first, second):
        return f"{first.hour}-{second.hour}"

    def two_minutes(one, other):
        return ",".join(str(m) for m in sorted({one.minute, other.minute}))

    yield "fixed", f"{at(middle)} * * *"
    yield "fixed", f"{at(high)} * * *"
    edge = pick(0, low, last, low - minute, low - hour, high + hour, high + minute)
    yield "fixed", f"{at(edge)} * * *"
    yield "fixed", pick(3, "0 0 * * *", "59 23 * * *", f"{at(low)} * * *", f"{at(last)} * * *")

    yield "list", f"{two_minutes(low, middle)} {middle.hour} * * *"
    yield "list", f"{middle.minute} {(low - hour).hour},{middle.hour},{(high + hour).hour} * * *"
    yield "list", pick(
        5,
        f"0,{last.minute} {low.hour},{high.hour} * * *",
        f"{middle.minute},*/30 {middle.hour} * * *",
        f"0-59/{pick(7, 10, 15, 20, 7)} {low.hour},{high.hour} * * *",
    )

    yield "hour-range", f"{middle.minute} {span(low - hour, high + hour)} * * *"
    yield "hour-range", pick(
        9,
        f"{last.minute} {span(low - 3 * hour, middle)} * * *",
        f"0 {span(middle, high + 2 * hour)} * * *",
        f"{low.minute} 0-23 * * *",
        f"0-59/{pick(11, 15, 20, 5, 13)} {span(low, high)} * * *",
        f"{middle.minute} 22-4 * * *",
        f"{middle.minute} {pick(13, 0, 1)}-23/2 * * *",
    )

    yield "minute-wildcard", f"*/15 {middle.hour} * * *"
    yield "minute-wildcard", pick(
        15,
        f"* {middle.hour} * * *",
        f"*/{pick(17, 10, 7, 20, 30)} {low.hour},{high.hour} * * *",
        f"*/30,{middle.minute} {span(low - hour, high)} * * *",
        f"*/20 {last.hour} * * {middle.isoweekday() % 7}",
    )

    yield "hour-wildcard", f"{middle.minute} * * * *"
    yield "hour-wildcard", pick(
        19,
        f"{middle.minute} */2 * * *",
        f"{two_minutes(low, last)} * * * *",
        f"0 */{pick(21, 3, 4, 6)} * * *",
        f"0 *,{middle.hour} * * *",
        f"{low.minute}-{max(low.minute, last.minute)}/9 * * * *",
    )

    yield "every-n-minutes", pick(22, "*/20 * * * *", "*/15 * * * *", "*/30 * * * *", "*/5 * * * *")
    yield "every-n-minutes", pick(24, "*/45 * * * *", "*/7 */2 * * *", "*/10 * * * *", "*/30 */3 * * *")

    weekday = middle.isoweekday() % 7
    nth = (middle.day - 1) // 7 + 1
    yield "weekday", f"{at(middle)} * * {weekday}"
    yield "weekday", pick(
        1,
        f"{at(middle)} * * {WEEKDAYS[weekday]}",
        f"{at(high)} * * {weekday or 7}",
        f"{at(middle)} ? * {(weekday + 1) % 7}",
        f"{at(middle)} * * MON-FRI",
        f"{at(middle)} * * FRI-MON",
    )
    yield "weekday", pick(
        4,
        f"{at(middle)} * * {weekday}#{nth}",
        f"{at(low)} * * {weekday}L",
        f"{at(middle)} * * {weekday},{(weekday + 2) % 7}",
        f"{at(last)} * * 5-7",
        f"{at(middle)} * * {WEEKDAYS[weekday]}#{nth},{(weekday + 1) % 7}",
    )

    month_length = calendar.monthrange(middle.year, middle.month)[1]
    to_last = month_length - middle.day
    yield "day-or-month", f"{at(middle)} {middle.day} * *"
    yield "day-or-month", pick(
        6,
        f"{at(middle)} L * *",
        f"{at(middle)} L-{to_last} * *" if to_last else f"{at(middle)} L * *",
        f"{at(middle)} {middle.day}W * *",
        f"{at(middle)} LW * *",
        f"{at(middle)} {middle.day - 1 or 2}-{middle.day + 1 if to_last else 31} * ?",
    )
    yield "day-or-month", pick(
        8,
        f"{at(middle)} * {MONTHS[middle.month - 1]} *",
        f"{at(middle)} {middle.day} {middle.month} *",
        f"{at(high)} * */2 *",
        f"{at(middle)} * {(middle.month + 9) % 12 + 1}-{middle.month} *",
        f"{at(low)} {middle.day} * *",
    )
    yield "day-or-month", pick(
        10,
        f"{at(middle)} 1 * {weekday}",
        f"{at(middle)} */2 * {weekday}",
        f"{at(middle)} {middle.day} * */2",
        f"{at(middle)} {middle.day} * {(weekday + 1) % 7}",
        f"{at(middle)} 1,*/5 * {WEEKDAYS[weekday]}",
    )


# ---------------------------------------------------------------- the oracle's own tests


# Zone, expression, the local day of a change, and the UTC times that a person works out for it.
KNOWN = [
    ("Europe/Berlin", "30 2 * * *", "2026-03-29", "01:00"),
    ("Europe/Berlin", "15,45 2 * * *", "2026-03-29", "01:00"),
    ("Europe/Berlin", "0 2,3 * * *", "2026-03-29", "01:00"),
    ("Europe/Berlin", "30 1-3 * * SUN", "2026-03-29", "00:30 01:00 01:30"),
    ("Europe/Berlin", "*/30 2 * * *", "2026-03-29", ""),
    ("Europe/Berlin", "30 */2 * * MON", "2026-03-29", ""),
    ("Europe/Berlin", "30 2 * * *", "2026-10-25", "00:30"),
    ("Europe/Berlin", "0 2,3 L-6 * *", "2026-10-25", "00:00 02:00"),
    ("Europe/Berlin", "*/30 2 * * *", "2026-10-25", "00:00 00:30 01:00 01:30"),
    ("Europe/Berlin", "30 */2 * 10 *", "2026-10-25", "22:30 00:30 01:30 03:30 05:30 07:30 09:30 11:30 "
     "13:30 15:30 17:30 19:30 21:30"),
    # Of Friday the 30th nothing was left; its day of month and weekday still count.
    ("Pacific/Apia", "30 2 30 12 *", "2011-12-31", "10:00"),
    ("Pacific/Apia", "30 2 * * 5", "2011-12-31", "10:00"),
    ("Pacific/Apia", "30 2 * * *", "2011-12-31", "10:00 12:30"),
    ("Pacific/Apia", "30 * * * FRI", "2011-12-31", ""),
    ("Australia/Lord_Howe", "15 2 * * *", "2026-10-04", "15:30"),
    ("Australia/Lord_Howe", "45 1 * * *", "2026-04-05", "14:45"),
    ("Australia/Lord_Howe", "*/15 1 * * *", "2026-04-05", "14:00 14:15 14:30 14:45 15:00 15:15"),
    # Day of month or weekday, and both where one of them begins with a star.
    ("Europe/Berlin", "30 2 1 * SUN", "2026-10-25", "00:30"),
    ("Europe/Berlin", "30 2 */2 * MON", "2026-10-25", ""),
    ("Europe/Berlin", "30 2 */2 * SUN", "2026-10-25", "00:30"),
    ("Europe/Berlin", "30 2 * * 5-7", "2026-10-25", "00:30"),
    ("Europe/Berlin", "30 2 * * 0#4,1", "2026-10-25", "00:30"),
    ("Europe/Berlin", "30 2 * * 7L", "2026-10-25", "00:30"),
    ("Europe/Berlin", "30 2 24W * *", "2026-10-25", ""),
]


def check_known():
    for name, text, day, expected in KNOWN:
        tz = zoneinfo.ZoneInfo(name)
        day_start = int(datetime.fromisoformat(day).replace(tzinfo=tz).timestamp())
        clocks = Clocks(tz, day_start)
        on_day = [
            instant
            for instant in (clocks.start + since_start for since_start in clocks.expected(Expression(text)))
            if datetime.fromtimestamp(instant, tz).date().isoformat() == day
        ]
        got = " ".join(datetime.fromtimestamp(instant, timezone.utc).strftime("%H:%M") for instant in on_day)
        assert got == expected, f"{name} `{text}` on {day}: expected `{expected}`, got `{got}`"


# ---------------------------------------------------------------- all zones, in parallel


def zone_data(name):
    *folders, file = name.split("/")
    return importlib.resources.files(".".join(["tzdata", "zoneinfo", *folders])).joinpath(file).read_bytes()


def changes_of(task):
    name, year_first, year_last = task
    return changes(zoneinfo.ZoneInfo(name), year_first, year_last)


def quiet_changes(name):
    """Changes by nothing, for a zone that has no others."""
    tz = zoneinfo.ZoneInfo(name)
    return [(instant, offset_at(tz, instant), offset_at(tz, instant)) for instant in QUIET_INSTANTS]


def case_lines(task):
    """The lines of one change, for all zones that share it."""
    (change, before, after), names = task
    clocks = Clocks(zoneinfo.ZoneInfo(names[0]), change)
    for name in names:
        # What is worked out for the first zone holds for the others only if no other change is near.
        tz = zoneinfo.ZoneInfo(name)
        assert offset_at(tz, clocks.start - LOOK_BACK) == before, f"{name} has a second change near {change}"
        assert offset_at(tz, clocks.end - MINUTE) == after, f"{name} has a second change near {change}"
    lines = []
    for class_name, text in dict.fromkeys(expressions(change, before, after)):
        expected = ",".join(map(str, clocks.expected(Expression(text))))
        fields = ["case", class_name, text, clocks.start, clocks.end, change, ",".join(names), expected]
        lines.append("\t".join(map(str, fields)))
    return lines, len(lines) * len(names)


def main():
    try:
        import tzdata
    except ImportError:
        sys.exit("the package `tzdata` is missing (scripts/dst-oracle-env prepares a python that has it)")
    # At once: whoever has other data need not wait for the rest.
    print("version", tzdata.IANA_VERSION, sep="\t", flush=True)

    check_known()

    names = sorted(zoneinfo.available_timezones())
    # Names with the same data have the same changes: each data is scanned once.
    names_of_data = {}
    for name in names:
        names_of_data.setdefault(zone_data(name), []).append(name)
    groups = list(names_of_data.values())
    scans = [(group[0], YEAR_FIRST, YEAR_LAST) for group in groups] + CURIOSITIES

    with multiprocessing.Pool(os.cpu_count()) as pool:
        found = pool.map(changes_of, scans, chunksize=4)
        names_of_change, n_changes, n_zones = {}, 0, 0
        for group, group_changes in zip(groups, found):
            n_changes += len(group) * len(group_changes)
            n_zones += len(group) * bool(group_changes)
            for change in group_changes or quiet_changes(group[0]):
                names_of_change.setdefault(change, []).extend(group)
            for name in group:
                print("zone", name, len(group_changes), sep="\t")
        for (name, _, _), more_changes in zip(CURIOSITIES, found[len(groups) :]):
            assert more_changes, f"{name} has lost its curious changes"
            for change in more_changes:
                names_of_change.setdefault(change, []).append(name)

        n_cases = 0
        for lines, n in pool.imap(case_lines, sorted(names_of_change.items()), chunksize=16):
            n_cases += n
            sys.stdout.write("\n".join(lines) + "\n")
    print("end", n_changes, n_zones, n_cases, sep="\t")


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough; python would complain once more while it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit("the oracle's reader went away")
