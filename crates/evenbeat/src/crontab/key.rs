//! Names for jobs that have none: what a person would call the command.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::JobKey;

/// Programs that run another one, and how many words of their own they take after their options.
const WRAPPERS: [(&str, usize); 16] = [
    ("sudo", 0),
    ("env", 0),
    ("exec", 0),
    ("nice", 0),
    ("ionice", 0),
    ("nohup", 0),
    ("time", 0),
    ("chronic", 0),
    ("sh", 0),
    ("bash", 0),
    ("php", 0),
    ("perl", 0),
    ("ruby", 0),
    ("node", 0),
    ("timeout", 0),
    ("flock", 1),
];

/// What only prepares the real command, before a `&&`, `||` or `;`.
const PREPARATIONS: [&str; 10] =
    ["cd", "test", "[", "[[", "command", ".", "source", "export", "umask", "sleep"];

/// How many plain words after the program belong to the name.
const N_ARGUMENTS: usize = 2;

/// Longer names are cut; a number and more must still fit.
const NAME_MAX: usize = 48;

/// Gives out names, each once.
#[derive(Debug, Default)]
pub(super) struct Keys {
    taken: BTreeSet<String>,
    /// The next number of a name that is taken.
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

/// The program's file name and plain words behind it; none if nothing of it can be part of a name.
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

/// The words of a command from its program on: without variables and without what only wraps it.
fn program_in(part: &str) -> Option<Vec<&str>> {
    let mut words: Vec<&str> = part.split_ascii_whitespace().map(|it| it.trim_matches(['"', '\''])).collect();
    loop {
        let first = *words.first()?;
        if first.contains('=') {
            words.remove(0);
            continue;
        }
        let wrapper = WRAPPERS.iter().find(|(name, _)| *name == file_name(first));
        let is_python = file_name(first).starts_with("python");
        let n_own = match wrapper {
            Some((_, n_own)) => *n_own,
            None if is_python => 0,
            None => return Some(words),
        };
        // Its options, and numbers that belong to them (`nice -n 10`, `timeout 5m`).
        let is_number =
            |word: &str| word.trim_end_matches(['s', 'm', 'h']).bytes().all(|it| it.is_ascii_digit());
        let is_option = |word: &&str| word.starts_with('-') || is_number(word);
        let n_options = words.iter().skip(1).take_while(|word| is_option(word)).count();
        let n_skipped = 1 + n_options + n_own;
        if words.len() <= n_skipped {
            return Some(words);
        }
        words.drain(..n_skipped);
    }
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
