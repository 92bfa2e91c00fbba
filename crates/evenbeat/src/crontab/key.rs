//! Derives job names from commands.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::JobKey;

/// A program that runs another one: its name, its options that take a separate value, and the number of arguments that
/// it takes itself.
struct Wrapper(&'static str, &'static [&'static str], usize);

const WRAPPERS: [Wrapper; 34] = [
    Wrapper("sudo", &["-u", "-g", "-D", "-h", "-p"], 0),
    Wrapper("doas", &["-u", "-C"], 0),
    Wrapper("su", &["-s", "-g"], 1),
    Wrapper("runuser", &["-u", "-g", "-s"], 0),
    Wrapper("env", &["-u", "-C", "-S"], 0),
    Wrapper("exec", &["-a"], 0),
    Wrapper("nice", &["-n"], 0),
    Wrapper("ionice", &["-c", "-n"], 0),
    Wrapper("chrt", &[], 0),
    Wrapper("taskset", &["-c"], 0),
    Wrapper("nohup", &[], 0),
    Wrapper("setsid", &[], 0),
    Wrapper("stdbuf", &["-i", "-o", "-e"], 0),
    Wrapper("time", &["-f", "-o"], 0),
    Wrapper("timeout", &["-s", "-k"], 0),
    Wrapper("chronic", &[], 0),
    Wrapper("cronic", &[], 0),
    Wrapper("run-one", &[], 0),
    Wrapper("systemd-cat", &["-t", "-p"], 0),
    Wrapper("flock", &["-w", "-E"], 1),
    Wrapper("lckdo", &["-W"], 1),
    Wrapper("setlock", &[], 1),
    Wrapper("sh", &[], 0),
    Wrapper("bash", &[], 0),
    Wrapper("dash", &[], 0),
    Wrapper("zsh", &[], 0),
    Wrapper("php", &["-d", "-c"], 0),
    Wrapper("perl", &[], 0),
    Wrapper("ruby", &[], 0),
    Wrapper("node", &["-r"], 0),
    Wrapper("then", &[], 0),
    Wrapper("else", &[], 0),
    Wrapper("do", &[], 0),
    Wrapper("!", &[], 0),
];

/// Commands that only prepare the real one, before a `&&`, `||` or `;`.
const PREPARATIONS: [&str; 22] = [
    "cd", "pushd", "test", "[", "[[", "command", "which", "type", ".", "source", "export", "set", "ulimit",
    "umask", "sleep", "if", "elif", "while", "until", "for", "true", "mkdir",
];

/// Number of plain words after the program that become part of the name.
const N_ARGUMENTS: usize = 2;

/// Longer names are cut, to leave room for a number.
const NAME_MAX: usize = 48;

/// Hands out unique names.
#[derive(Debug, Default)]
pub(super) struct Keys {
    taken: BTreeSet<String>,
    /// The next number for a name that is taken.
    next: BTreeMap<String, u32>,
}

impl Keys {
    /// A name for the command on this line of the file.
    pub(super) fn next(&mut self, command: &str, line: usize) -> Option<JobKey> {
        let base = name_of(command).unwrap_or_else(|| format!("line-{line}"));
        let mut name = base.clone();
        let number = self.next.entry(base.clone()).or_insert(2);
        while !self.taken.insert(name.clone()) {
            name = format!("{base}-{number}");
            *number += 1;
        }
        name.parse().ok()
    }
}

/// The program's file name and the plain words after it. `None` if nothing of it can be part of a name.
fn name_of(command: &str) -> Option<String> {
    let mut parts = command.split(['&', '|', ';', '(', ')', '{', '}', '\n']).filter_map(program_in);
    let first = parts.next()?;
    let is_preparation = |words: &Vec<&str>| words.first().is_some_and(|it| PREPARATIONS.contains(it));
    let chosen = if is_preparation(&first) {
        parts.find(|words| !is_preparation(words)).unwrap_or(first)
    } else {
        first
    };
    let (program, arguments) = chosen.split_first()?;
    let plain = |word: &&&str| word.bytes().all(is_allowed) && !word.starts_with(['-', '.']);
    let words = [file_name(program)].into_iter().chain(arguments.iter().take_while(plain).copied());
    let joined = words.take(1 + N_ARGUMENTS).collect::<Vec<_>>().join("-");
    let name: String = joined.chars().map(|it| if it.is_ascii() { it } else { '-' }).collect();
    let name: String = name.bytes().map(|it| char::from(if is_allowed(it) { it } else { b'-' })).collect();
    let name = name.trim_start_matches(|it: char| !it.is_ascii_alphanumeric());
    let name = name.get(..NAME_MAX).unwrap_or(name).trim_end_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}

/// The words of a command from its program on, without variables and wrapper programs.
fn program_in(part: &str) -> Option<Vec<&str>> {
    let mut words: Vec<&str> = part.split_ascii_whitespace().map(|it| it.trim_matches(['"', '\''])).collect();
    loop {
        let first = *words.first()?;
        if first.contains('=') {
            words.remove(0);
            continue;
        }
        let (with_value, n_own): (&[&str], usize) =
            match WRAPPERS.iter().find(|wrapper| wrapper.0 == file_name(first)) {
                Some(Wrapper(_, with_value, n_own)) => (with_value, *n_own),
                None if file_name(first).starts_with("python") => (&["-W", "-X"], 0),
                None => return Some(words),
            };
        let mut n_skipped = 1 + n_options(words.get(1..)?, with_value) + n_own;
        if 0 < n_own {
            // Options may also follow its own arguments: `flock FILE -c 'COMMAND'`.
            n_skipped += n_options(words.get(n_skipped..).unwrap_or_default(), with_value);
        }
        if words.len() <= n_skipped {
            return Some(words);
        }
        words.drain(..n_skipped);
    }
}

/// The number of leading words that are options, their values, or numbers such as in `timeout 5m`.
fn n_options(words: &[&str], with_value: &[&str]) -> usize {
    let is_number = |word: &str| word.trim_end_matches(['s', 'm', 'h']).bytes().all(|it| it.is_ascii_digit());
    let mut n = 0;
    while let Some(word) = words.get(n).filter(|word| word.starts_with('-') || is_number(word)) {
        n += if with_value.contains(word) { 2 } else { 1 };
    }
    n.min(words.len())
}

fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._:-".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: &str) {
        assert_eq!(Keys::default().next(command, 7).unwrap().as_str(), expected, "{command}");
    }

    #[test]
    fn a_job_is_called_what_people_call_its_command() {
        check("/srv/bin/backup.sh", "backup.sh");
        check("/srv/bin/backup.sh daily >/dev/null 2>&1", "backup.sh-daily");
        check("scrapy crawl prices -a shop=test", "scrapy-crawl-prices");
        check("certbot renew --quiet", "certbot-renew");
        check("cd /srv/app && php artisan schedule:run >> /dev/null", "artisan-schedule:run");
        check("test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )", "run-parts");
        check("[ -d /x ] && find /x -mtime +7 -delete", "find");
        check("LANG=C nice -n 10 /usr/bin/python3 /opt/etl/load.py orders", "load.py-orders");
        check("flock -n /tmp/sync.lock rsync -a /a /b", "rsync");
        check("flock -n /tmp/x.lock -c '/srv/bin/locked.sh'", "locked.sh");
        check("sudo -u www-data php /srv/app/cron.php", "cron.php");
        check("su postgres -c \"pg_dump shop\"", "pg_dump-shop");
        check("if [ -x /usr/bin/munin-cron ]; then /usr/bin/munin-cron; fi", "munin-cron");
        check("command -v php >/dev/null && php /srv/sessionclean", "sessionclean");
        check("set -e; cd /srv; ionice -c 3 nice -n 19 ./reindex all", "reindex-all");
        check("timeout 300 bash -lc '/srv/bin/sync all'", "sync-all");
        check("sleep 30; /srv/bin/ping.sh", "ping.sh");
        check("curl -fsS https://status.example/ping", "curl");
        check("cd /srv", "cd");
        check("bash", "bash");
        check("…", "line-7");
        check("---", "line-7");
        check("", "line-7");
        check("übung.sh", "bung.sh");
        check(&"x".repeat(500), &"x".repeat(48));
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let mut keys = Keys::default();
        let commands = ["backup.sh", "backup.sh", "backup.sh 2", "backup.sh", "backup.sh 2"];
        let names: Vec<String> =
            commands.iter().map(|it| keys.next(it, 1).unwrap().as_str().to_owned()).collect();
        assert_eq!(names, ["backup.sh", "backup.sh-2", "backup.sh-2-2", "backup.sh-3", "backup.sh-2-3"]);
    }
}
