"""What cron expressions come to, by others: croniter, for the calendar, and Python's zoneinfo, for the zones.

Between them stands a walk: minute by minute (second by second where the expression has seconds) over what the
zone's clock shows. Where an expression can be said to croniter, a plain matcher of the calendar here must agree
with it; croniter knows no workdays (15W), and takes L5 for the last Friday.

Prints one line for each case: zone, expression, the walk's first and last second, how often it came, the sum of
the seconds, and the first few of them. The kinds of cases:

  * around each change of each zone's offset in twenty years
  * anywhere in those years, in each zone
  * by the calendar alone: a hundred that follow each other, from anywhere, in UTC
"""

import argparse
import calendar
import random
import sys
from datetime import date, datetime, timedelta, timezone
from importlib.metadata import version
from zoneinfo import ZoneInfo, reset_tzpath

from croniter import croniter

# Their data come with the package tzdata, not from the system.
reset_tzpath([])

FIRST, LAST = datetime(2006, 1, 1, tzinfo=timezone.utc), datetime(2026, 1, 1, tzinfo=timezone.utc)
EPOCH = datetime(1970, 1, 1)
ZONES = """Africa/Cairo Africa/Casablanca Africa/El_Aaiun Africa/Johannesburg Africa/Khartoum Africa/Lagos Africa/Monrovia
Africa/Tripoli Africa/Windhoek America/Argentina/Buenos_Aires America/Bogota America/Caracas America/Chicago America/Havana
America/Los_Angeles America/Mexico_City America/New_York America/Nuuk America/Phoenix America/Santiago America/Sao_Paulo
America/Scoresbysund America/St_Johns Antarctica/Casey Antarctica/Troll Asia/Amman Asia/Beirut Asia/Gaza Asia/Hovd
Asia/Jerusalem Asia/Kathmandu Asia/Kolkata Asia/Pyongyang Asia/Shanghai Asia/Tehran Asia/Tokyo Atlantic/Azores
Australia/Adelaide Australia/Eucla Australia/Lord_Howe Australia/Sydney Europe/Berlin Europe/Dublin Europe/Istanbul
Europe/London Europe/Moscow Europe/Volgograd Pacific/Apia Pacific/Chatham Pacific/Fakaofo""".split()
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
DAYS = "SUN MON TUE WED THU FRI SAT".split()
CALENDAR = 100


class Field:
    """A field of an expression: its text, what croniter calls it (None: nothing), its values or what tells of a day."""

    def __init__(self, text, theirs, matches):
        self.text, self.theirs, self.matches = text, theirs, matches

    @property
    def free(self):
        return "*" in self.text or "/" in self.text

    @property
    def restricted(self):
        return not self.text.startswith("*")


def plain(draw, least, most, names=()):
    """An item without specials: text, croniter's text, values."""
    name = lambda value: draw.choice([names[value], names[value].lower()]) if names and value < len(names) and draw.random() < 0.4 else None
    kind = draw.random()
    value = draw.randint(least, most)
    if kind < 0.55:
        return name(value) or f"{value:0{draw.choice([1, 2])}}", str(value), {value}
    step = draw.choice([1, 2, 3, 5, 7, 10, 15, 20, 30, 40])
    if kind < 0.7:
        # croniter takes no step that is larger than the field.
        theirs = f"*/{step}" if step <= most - least else str(least)
        return f"*/{step}", theirs, set(range(least, most + 1, step))
    end = draw.randint(value, most)
    text = f"{name(value) or value}-{name(end) or end}"
    if kind < 0.85:
        # A range of one value is all values to croniter 7.0.
        theirs = f"{value}-{end}" if value < end else str(value)
        return text, theirs, set(range(value, end + 1))
    values = set(range(value, end + 1, step))
    return f"{text}/{step}", ",".join(map(str, sorted(values))), values


def listed(draw, least, most, names=(), star=0.3):
    if draw.random() < star:
        return Field("*", "*", set(range(least, most + 1)))
    items = [plain(draw, least, most, names) for _ in range(draw.choice([1, 1, 1, 2, 3]))]
    texts, theirs, values = zip(*items)
    return Field(",".join(texts), ",".join(theirs), set().union(*values))


def last_of(day):
    return calendar.monthrange(day.year, day.month)[1]


def nearest_workday(year, month, number):
    """By looking at the days around it, the nearer ones first, within the month."""
    last = calendar.monthrange(year, month)[1]
    if number > last:
        return None
    for away in (0, -1, 1, -2, 2):
        if 1 <= number + away <= last and date(year, month, number + away).weekday() < 5:
            return number + away


def day_of_month(draw):
    if draw.random() < 0.35:
        return Field("*", "*", lambda day: True)
    tests, texts, theirs = [], [], []
    for _ in range(draw.choice([1, 1, 2, 3])):
        kind = draw.random()
        if kind < 0.12:
            texts.append(draw.choice(["L", "l"]))
            theirs.append("l")
            tests.append(lambda day: day.day == last_of(day))
        elif kind < 0.2:
            texts.append(draw.choice(["LW", "lw"]))
            theirs.append(None)
            tests.append(lambda day: day.day == nearest_workday(day.year, day.month, last_of(day)))
        elif kind < 0.35:
            number = draw.randint(1, 31)
            texts.append(f"{number}{draw.choice('Ww')}")
            theirs.append(None)
            tests.append(lambda day, n=number: day.day == nearest_workday(day.year, day.month, n))
        else:
            text, their, values = plain(draw, 1, 31)
            texts.append(text)
            theirs.append(their)
            tests.append(lambda day, v=values: day.day in v)
    # croniter takes the last day in no list.
    known = None if None in theirs or ("l" in theirs and len(theirs) > 1) else ",".join(theirs)
    return Field(",".join(texts), known, lambda day: any(test(day) for test in tests))


def day_of_week(draw):
    if draw.random() < 0.45:
        return Field("*", "*", lambda day: True)
    sunday_first = lambda day: day.isoweekday() % 7
    tests, texts, theirs = [], [], []
    for _ in range(draw.choice([1, 1, 2])):
        kind, weekday = draw.random(), draw.randint(0, 6)
        name = draw.choice([DAYS[weekday], DAYS[weekday].lower(), str(weekday), "7" if weekday == 0 else str(weekday)])
        is_it = lambda day, w=weekday: sunday_first(day) == w
        if kind < 0.15:
            texts.append(name + draw.choice("Ll"))
            theirs.append(f"L{weekday}")
            tests.append(lambda day, is_it=is_it: is_it(day) and day.day > last_of(day) - 7)
        elif kind < 0.3:
            nth = draw.randint(1, 5)
            texts.append(f"{name}#{nth}")
            theirs.append(f"{weekday}#{nth}")
            tests.append(lambda day, is_it=is_it, n=nth: is_it(day) and (day.day - 1) // 7 + 1 == n)
        elif kind < 0.45 and weekday > 0:
            end = draw.choice(["SUN", "sun", "7"])
            texts.append(f"{name}-{end}")
            values = set(range(weekday, 7)) | {0}
            theirs.append(",".join(map(str, sorted(values))))
            tests.append(lambda day, v=values: sunday_first(day) in v)
        else:
            text, their, values = plain(draw, 0, 6, DAYS)
            if text.endswith("-SUN") or text.endswith("-sun"):
                text = "SUN"  # of one day alone: SUN-SUN, 0-SUN
                their, values = "0", {0}
            texts.append(text)
            theirs.append(their)
            tests.append(lambda day, v=values: sunday_first(day) in v)
    # croniter takes neither numbered nor last days in lists with plain ones.
    special = sum("#" in it or "L" in it for it in theirs)
    known = None if special and len(theirs) > 1 else ",".join(theirs)
    return Field(",".join(texts), known, lambda day: any(test(day) for test in tests))


class Expression:
    def __init__(self, draw, seconds, often):
        star = 0.5 if often else 0.15
        self.second = listed(draw, 0, 59, star=0.2) if seconds else None
        self.minute, self.hour = listed(draw, 0, 59, star=star), listed(draw, 0, 23, star=star)
        self.day, self.month = day_of_month(draw), listed(draw, 1, 12, ["", *MONTHS], star=0.8)
        if self.month.text.startswith("-"):
            self.month = Field("*", "*", set(range(1, 13)))
        self.weekday = day_of_week(draw)
        fields = [self.minute, self.hour, self.day, self.month, self.weekday]
        timed = [self.minute, self.hour]
        if seconds:
            fields, timed = [self.second, *fields], [self.second, *timed]
        blanks = lambda: draw.choice([" ", " ", " ", "  ", "\t"])
        self.text = "".join(field.text + blanks() for field in fields).strip()
        self.text = self.text.replace("\t", "\\t")
        self.fixed = not any(field.free for field in timed)
        self.either = self.day.restricted and self.weekday.restricted
        self.seconds = seconds
        theirs = [field.theirs for field in fields]
        self.theirs = None if None in theirs else " ".join(theirs)
        # Where both day fields count, croniter takes what is special in one of them for all.
        special = [any(c in field.theirs or "" for c in "lL#") for field in (self.day, self.weekday) if field.theirs]
        # A list of all days is a star to it, wherever it stands.
        january = [date(2024, 1, 1 + n) for n in range(31)]
        full = any(all(map(field.matches, january)) for field in (self.day, self.weekday))
        if self.either and (any(special) or full):
            self.theirs = None

    def is_day(self, day):
        if day.month not in self.month.matches:
            return False
        of_month, of_week = self.day.matches(day), self.weekday.matches(day)
        return of_month or of_week if self.either else of_month and of_week

    def times(self):
        seconds = sorted(self.second.matches) if self.seconds else [0]
        for hour in sorted(self.hour.matches):
            for minute in sorted(self.minute.matches):
                for second in seconds:
                    yield timedelta(hours=hour, minutes=minute, seconds=second)

    def by_calendar(self, first, last):
        """What the calendar here says, of naive times."""
        times, day = list(self.times()), first.date()
        while day <= last.date():
            if self.is_day(day):
                midnight = datetime(day.year, day.month, day.day)
                for time in times:
                    if first <= midnight + time <= last:
                        yield midnight + time
            day += timedelta(days=1)

    def by_croniter(self, first, last, count=None):
        """What croniter says, of naive times."""
        walk = croniter(
            self.theirs, first - timedelta(seconds=1), second_at_beginning=True, day_or=self.either, max_years_between_matches=60
        )
        while count is None or count > 0:
            try:
                at = walk.get_next(datetime)
            except Exception:
                return
            if at > last:
                return
            count = count and count - 1
            yield at


def changes(zone):
    """The seconds at which a zone's offset changes."""
    offset = lambda at: datetime.fromtimestamp(at, zone).utcoffset()
    step, found = 6 * 3600, []
    for at in range(int(FIRST.timestamp()), int(LAST.timestamp()), step):
        low, high = at, at + step
        if offset(low) == offset(high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if offset(middle) != offset(low) else (middle, high)
        found.append(high)
    return found


class Judge:
    def __init__(self):
        self.agreed = self.alone = 0

    def matching(self, expression, first, last):
        """The naive times between two, by all that can tell."""
        ours = list(expression.by_calendar(first, last))
        if expression.theirs is None:
            self.alone += 1
            return ours
        theirs = list(expression.by_croniter(first, last))
        if ours != theirs:
            sys.exit(f"{expression.text} ({expression.theirs}) from {first}: the calendar here and croniter differ: {ours[:3]} {theirs[:3]}")
        self.agreed += 1
        return ours

    def walk(self, expression, zone, first, last):
        """All seconds from first to last at which it comes, by walking."""
        around = timedelta(hours=26)
        shown = lambda at: datetime.fromtimestamp(at, zone).replace(tzinfo=None)
        naive = lambda at: EPOCH + timedelta(seconds=at)
        times = self.matching(expression, naive(first) - 2 * around, naive(last) + around)
        step, came = 1 if expression.seconds else 60, []
        if not expression.fixed:
            wanted = set(times)
            return [at for at in range(first, last + 1, step) if shown(at) in wanted]
        # When the clock first shows it, or a later one: what was shown for two days before has come.
        latest = max(shown(at) for at in range(first - 2 * 86400, first, 900))
        latest = max(latest, shown(first - 1))
        pending = [time for time in times if time > latest]
        for at in range(first, last + 1, step):
            reached = 0
            now = shown(at)
            while reached < len(pending) and pending[reached] <= now:
                reached += 1
            if reached:
                came.append(at)
                del pending[:reached]
        return came


def tell(zone, expression, first, last, came):
    some = ",".join(map(str, came[:6]))
    print(zone, expression.text, first, last, len(came), sum(came), some, sep="\t")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=400, help="for each zone")
    parser.add_argument("--gate", action="store_true", help="few of them, for the file beside this")
    options = parser.parse_args()
    draw, judge = random.Random(options.seed), Judge()
    print(f"# seed {options.seed}, croniter {version('croniter')}, tzdata {version('tzdata')}")
    cases = of_changes = 0
    for name in ZONES:
        zone = ZoneInfo(name)
        changed = changes(zone)
        if options.gate:
            changed = draw.sample(changed, min(3, len(changed)))
        each = max(1, options.cases // 2 // max(1, len(changed)))
        for at in [at for at in changed for _ in range(1 if options.gate else each)]:
            expression = Expression(draw, draw.random() < 0.1, draw.random() < 0.7)
            reach = 5400 if expression.seconds else 36 * 3600
            # On a full minute, as all changes are: so that the walk meets it.
            first = (at - draw.randrange(reach)) // 60 * 60
            tell(name, expression, first, first + reach, judge.walk(expression, zone, first, first + reach))
            cases, of_changes = cases + 1, of_changes + 1
        for _ in range(1 if options.gate else options.cases // 2):
            expression = Expression(draw, False, draw.random() < 0.3)
            first = draw.randrange(int(FIRST.timestamp()), int(LAST.timestamp())) // 60 * 60
            reach = draw.choice([86400, 5 * 86400])
            tell(name, expression, first, first + reach, judge.walk(expression, zone, first, first + reach))
            cases += 1
    by_croniter = 0
    while by_croniter < (60 if options.gate else options.cases * 10):
        expression = Expression(draw, draw.random() < 0.3, False)
        if expression.theirs is None:
            continue
        first = draw.randrange(int(FIRST.timestamp()), int(LAST.timestamp()))
        naive = EPOCH + timedelta(seconds=first)
        came = list(expression.by_croniter(naive, datetime(2065, 1, 1), CALENDAR))
        came = [int((at - EPOCH).total_seconds()) for at in came]
        if len(came) == CALENDAR:
            tell("UTC", expression, first, came[-1], came)
            by_croniter += 1
    print(
        f"{cases} walks in {len(ZONES)} zones, {of_changes} of them over a change of offset; in {judge.agreed} croniter "
        f"agreed with the calendar, {judge.alone} it cannot be told; {by_croniter} lists by croniter",
        file=sys.stderr,
    )


main()
