//! A made-up fleet, such as a team that watches shops and news might have. Its commands only sleep and print.

use std::fmt::Write;

use evenbeat_core::time::{Duration, Timestamp};

/// The job file of the fleet, for a demo that starts at `now`.
pub fn job_file(now: Timestamp) -> String {
    let mut text = String::from(HEAD);
    shops(&mut text, now);
    registers(&mut text, now);
    feeds(&mut text, now);
    partner(&mut text, now);
    checks(&mut text);
    old_crontab(&mut text, now);
    characters(&mut text, now);
    clocks(&mut text, now);
    text
}

/// The job that the demo pauses, the one that it triggers, and the one that it mutes.
pub(super) const PAUSED: &str = "shop:kite-images";
pub(super) const TRIGGERED: &str = "shop:full-recrawl";
pub(super) const MUTED: &str = "shop:hanging-export";

const HEAD: &str = r#"# A made-up fleet: every command only takes time, prints, fails, or hangs.

[defaults]
retry = { delays = ["10s", "1m", "5m"] }

[template.shop]
pool = "crawl"
tenant = "shop"
contact = "prices@shop.example"
labels = { team = "prices" }

# Needs a browser, and there are only three.
[template.register]
pool = "browser"
tenant = "gov"
contact = "registers@gov.example"
labels = { team = "registers" }

[template.feed]
tenant = "news"
labels = { team = "news" }

[template.partner]
site = "partner.example"
tenant = "news"
labels = { team = "partners" }
"#;

fn job(text: &mut String, name: &str, command: &str, rest: &str) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\n[[job]]\nname = \"{name}\"\ncommand = {command}\n{}\n", rest.trim());
}

/// A command that takes about this many tenths of a second.
fn taking(tenths: usize) -> String {
    format!("[\"sleep\", \"{}.{}\"]", tenths / 10, tenths % 10)
}

/// A command of several lines.
fn script(lines: &str) -> String {
    format!("[\"sh\", \"-c\", '''\n{}\n''']", lines.trim())
}

/// A command that pages through a shop, with one line of output a second.
fn crawl(pages: usize) -> String {
    let lines = r#"
n=0
while [ $n -lt PAGES ]; do
  n=$((n + 1))
  printf "\033[32m200\033[0m \033[36m/list?page=%d\033[0m \033[1m%d\033[0m items, %d of PAGES pages\n" $n $((n % 7 + 20)) $n
  [ $((n % 9)) -ne 0 ] || printf "\033[33mslow\033[0m page %d took 4.1s\n" $n >&2
  sleep 1
done
printf "\033[32mdone\033[0m %d pages\n" $n
printf "{\"pages_processed\": %d, \"changes_detected\": %d}" $n $((n / 5)) > "$EVENBEAT_RESULT_FILE""#;
    script(&lines.replace("PAGES", &pages.to_string()))
}

/// A first run this many tenths of a second after the demo starts, so that the first seconds are busy.
fn first_run(now: Timestamp, tenths: usize) -> String {
    let at = now + Duration::from_millis(i64::try_from(tenths * 100).unwrap_or(0));
    format!("next_run_at = {at}")
}

/// Shop crawls: prices must be fresh, stock changes fast.
fn shops(text: &mut String, now: Timestamp) {
    const SHOPS: [&str; 12] = [
        "atlas", "birch", "cobalt", "delta", "ember", "fjord", "grove", "harbor", "iris", "juniper", "kite",
        "lumen",
    ];
    for (n, shop) in SHOPS.iter().enumerate() {
        let name = |what: &str| format!("shop:{shop}-{what}");
        let prices = "template = \"shop\"\nfresh = \"10m\"\ncooldown = \"4m\"";
        job(text, &name("prices"), &taking(60 + n * 10), prices);
        let stock = format!("template = \"shop\"\nevery = \"3m\"\n{}", first_run(now, 10 + n * 23));
        job(text, &name("stock"), &taking(30 + n * 4), &stock);
        let catalog = format!(
            "template = \"shop\"\ndescription = \"All products of {shop}.example\"\nevery = \"4m\"\n{}",
            first_run(now, 5 + n * 110)
        );
        job(text, &name("catalog"), &crawl(20 + n * 2), &catalog);
        job(text, &name("images"), &taking(60 + n * 10), "template = \"shop\"\nevery = \"30m\"");
    }
}

/// Registers that need more browsers than there are, so that some of them always wait.
fn registers(text: &mut String, now: Timestamp) {
    const REGISTERS: [&str; 9] =
        ["company", "court", "customs", "fishery", "harbour", "land", "patent", "tender", "vessel"];
    for (n, register) in REGISTERS.iter().enumerate() {
        let (before, entries, after) = (20 + n * 2, 140 + n * 17, 15 + n % 4);
        let lines = format!(
            r#"
echo "opening a browser"
sleep {before}
printf "read \033[1m%d\033[0m entries\n" {entries}
sleep {after}
"#
        );
        let rest = format!(
            "template = \"register\"\ndescription = \"The {register} register\"\nevery = \"2m\"\n{}",
            first_run(now, 3 + n * 4)
        );
        job(text, &format!("gov:{register}-register"), &script(&lines), &rest);
    }
}

/// Feeds that are polled often and take little time.
fn feeds(text: &mut String, now: Timestamp) {
    for n in 1..=40 {
        let every = ["1m", "4m", "6m", "10m", "15m"][n % 5];
        // Every other one starts at the beginning, the rest wherever there is room.
        let first = if n % 2 == 0 { first_run(now, 4 + n * 6) } else { String::new() };
        let rest = format!("template = \"feed\"\nevery = \"{every}\"\n{first}");
        job(text, &format!("news:feed-{n:02}"), &taking(8 + n % 30), &rest);
    }
}

/// A site with a limit of two concurrent runs.
fn partner(text: &mut String, now: Timestamp) {
    for n in 1..=30 {
        let first = if n <= 5 { first_run(now, 12 + n) } else { String::new() };
        let rest = format!("template = \"partner\"\nevery = \"10m\"\n{first}");
        job(text, &format!("news:partner-{n:02}"), &taking(40 + n % 9 * 10), &rest);
    }
}

/// Checks on the minute, as in crontabs.
fn checks(text: &mut String) {
    for n in 1..=4 {
        let rest = "cron = \"* * * * *\"\nlabels = { team = \"ops\" }";
        job(text, &format!("ops:check-{n:02}"), &taking(2 + n % 4), rest);
    }
}

/// Jobs from a crontab, all in the same minute of the hour or of the night, for a rebalance to spread.
fn old_crontab(text: &mut String, now: Timestamp) {
    let groups =
        [("sync", "1h", now + Duration::from_mins(50)), ("report", "6h", now + Duration::from_mins(200))];
    for (name, every, next) in groups {
        for n in 1..=380 {
            job(
                text,
                &format!("crm:{name}-{n:03}"),
                &taking(10 + n % 20),
                &format!("every = \"{every}\"\nnext_run_at = {next}\nlabels = {{ team = \"crm\" }}"),
            );
        }
    }
}

/// Jobs with problems, each of another kind.
fn characters(text: &mut String, now: Timestamp) {
    let of_day = |at: Timestamp| at.to_string().get(11..19).unwrap_or("00:00:00").to_owned();
    let (closes, opens) = (of_day(now + Duration::from_secs(45)), of_day(now + Duration::from_mins(4)));
    let rest = format!(
        r#"
description = "The archive closes in under a minute, and opens again three minutes later"
labels = {{ team = "registers" }}
every = "1m"
blackout_periods = [{{ start = "{closes}", end = "{opens}" }}]
{}"#,
        first_run(now, 20)
    );
    job(text, "gov:archive", &taking(6), &rest);

    let lines = r#"
echo "GET https://gazette.example/today 200"
echo "Traceback (most recent call last):" >&2
echo "  File \"parse.py\", line 41, in rows" >&2
printf "\033[31mKeyError\033[0m: price\n" >&2
exit 1"#;
    let rest = format!("template = \"feed\"\nevery = \"40s\"\n{}", first_run(now, 15));
    job(text, "news:broken-parser", &script(lines), &rest);

    let lines = r#"
sleep 0.5
[ $(($(date +%s) % 3)) -ne 0 ] || { echo "login refused: 429 Too Many Requests" >&2; exit 1; }"#;
    let rest = format!(
        "template = \"shop\"\nevery = \"45s\"\nretry = {{ delays = [\"5s\"] }}\n{}",
        first_run(now, 25)
    );
    job(text, "shop:flaky-login", &script(lines), &rest);

    // Good at first, so that one can watch its data grow too old.
    let closed_from = (now + Duration::from_secs(10)).as_second();
    let lines = format!(
        r#"
[ $(date +%s) -ge {closed_from} ] || {{ echo "31 new tenders"; exit 0; }}
echo "https://tenders.example answered 403 Forbidden" >&2
exit 1"#
    );
    let rest = format!(
        r#"
description = "New tenders, never older than 50 seconds"
tenant = "gov"
labels = {{ team = "registers" }}
fresh = "50s"
cooldown = "15s"
retry = {{ delays = ["15s"] }}
{}"#,
        first_run(now, 5)
    );
    job(text, "gov:tenders", &script(&lines), &rest);

    let lines = "echo \"connected, waiting for the export\"\nexec sleep 3600";
    let rest = format!(
        "template = \"shop\"\nevery = \"2m\"\nmax_expected_duration = \"10s\"\nmax_allowed_duration = \"25s\"\n{}",
        first_run(now, 8)
    );
    job(text, MUTED, &script(lines), &rest);

    let rest = format!(
        "template = \"shop\"\nevery = \"3m\"\nmax_expected_duration = \"20s\"\n{}",
        first_run(now, 18)
    );
    job(text, "shop:slow-report", &taking(280), &rest);

    let lines = "sleep 300 &\nsleep 300 &\necho \"started two helpers\"";
    let rest = format!("every = \"2m\"\nlabels = {{ team = \"ops\" }}\n{}", first_run(now, 12));
    job(text, "ops:leaves-helpers", &script(lines), &rest);

    let rest = "template = \"shop\"\ndescription = \"Everything again, on request\"\nmanual = true";
    job(text, TRIGGERED, &crawl(90), rest);

    let rest = format!("every = \"2m\"\nlabels = {{ team = \"ops\" }}\n{}", first_run(now, 30));
    job(text, "ops:missing-tool", "[\"no-such-tool\", \"--version\"]", &rest);
}

/// Jobs at fixed times, in time zones of their own.
fn clocks(text: &mut String, now: Timestamp) {
    let rest = "template = \"feed\"\ncron = \"0 6 * * MON-FRI\"\ntz = \"Europe/Berlin\"";
    job(text, "news:briefing", &taking(20), rest);
    let rest = "template = \"feed\"\ncron = \"30 9 * * *\"\ntz = \"Asia/Tokyo\"";
    job(text, "news:market-open", &taking(20), rest);
    let rest = "cron = \"H H(1-4) * * *\"\ntz = \"Europe/Berlin\"\nlabels = { team = \"ops\" }";
    job(text, "ops:backup", &taking(50), rest);
    let rest = format!("template = \"shop\"\nat = {}", now + Duration::from_hours(2));
    job(text, "shop:season-launch", &taking(30), &rest);
}

#[cfg(test)]
mod tests {
    use evenbeat_core::zone::Zones;

    use super::*;
    use crate::jobfile::{SourceText, load};

    #[test]
    fn the_fleet_is_a_good_job_file_at_any_time_of_day() {
        for now in ["2026-11-16T10:00:00Z", "2026-11-16T23:57:30.5Z", "2028-02-29T23:59:59.999Z"] {
            let now: Timestamp = now.parse().unwrap();
            let file = SourceText { name: "demo.toml".to_owned(), text: job_file(now) };
            let loaded = load(&[file], now, &mut Zones::new());
            let loaded = loaded.unwrap_or_else(|faults| panic!("{}", faults.render(false)));
            let n_jobs: usize = loaded.files.iter().map(|it| it.jobs.len()).sum();
            assert_eq!(n_jobs, 48 + 9 + 40 + 30 + 4 + 760 + 9 + 4);
        }
    }

    #[test]
    fn the_first_seconds_are_busy() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let file = SourceText { name: "demo.toml".to_owned(), text: job_file(now) };
        let loaded =
            load(&[file], now, &mut Zones::new()).unwrap_or_else(|it| panic!("{}", it.render(false)));
        let hints = loaded.files.iter().flat_map(|it| &it.jobs).filter_map(|it| it.job.next_run_hint);
        let starts: Vec<Timestamp> = hints.filter(|at| *at < now + Duration::from_secs(20)).collect();
        for second in 1..20 {
            let from = now + Duration::from_secs(second);
            let n_starts =
                starts.iter().filter(|at| from <= **at && **at < from + Duration::from_secs(2)).count();
            assert!(0 < n_starts, "nothing starts in seconds {second} and {}", second + 1);
        }
    }
}
