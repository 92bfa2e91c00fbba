//! What becomes of a crontab that someone wants to hand over: each entry as a job, with the time it has or a better one,
//! or the reason why it stays behind. Nothing is changed here.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::{CommandTarget, Job, Target};
use evenbeat_core::schedule::cron::CronExpr;
use evenbeat_core::schedule::{Cron, Schedule};
use evenbeat_core::spec::{JobSpec, written};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::zone::{Zone, Zones};

use super::ViewError;
use super::analysis::{AnalysisFigures, ChangeKind, FleetFile};
use crate::app::App;
use crate::crontab::{self, Crontab, CrontabEntry, CrontabVariable, SkipReason};
use crate::fleet::DAY_HOURS;
use crate::jobfile::{Diagnostics, SourceText};

/// Variables that are about cron itself, or that a run gets from Evenbeat.
const NOT_TAKEN: [&str; 9] =
    ["MAILTO", "MAILFROM", "SHELL", "HOME", "LOGNAME", "USER", "RANDOM_DELAY", "START_HOURS_RANGE", "CRON"];

/// Words that only a shell understands as a command.
const SHELL_WORDS: [&str; 31] = [
    ".", ":", "[", "[[", "!", "alias", "case", "cd", "command", "eval", "exec", "exit", "export", "for",
    "if", "let", "local", "pushd", "read", "return", "set", "shift", "source", "time", "trap", "type",
    "ulimit", "umask", "unset", "until", "while",
];

/// A crontab, and what would become of it.
#[derive(Debug)]
pub(crate) struct Takeover {
    /// In the order of their lines.
    pub(crate) entries: Vec<TakeoverEntry>,
    /// As it is, and as proposed.
    pub(crate) figures: AnalysisFigures,
    /// Whether times are taken as UTC only because the crontab names no zone.
    pub(crate) assumes_utc: bool,
    /// Variables that jobs get from the crontab.
    pub(crate) variables: BTreeSet<String>,
    /// Jobs of the fleet that the proposal does not look at.
    pub(crate) n_jobs_here: usize,
}

/// A line of a crontab.
#[derive(Debug)]
pub(crate) struct TakeoverEntry {
    pub(crate) line: usize,
    /// As written; empty if the line could not be read.
    pub(crate) schedule: String,
    pub(crate) command: String,
    pub(crate) fate: EntryFate,
}

/// What becomes of it.
#[derive(Debug)]
pub(crate) enum EntryFate {
    /// It becomes a job.
    Job(Box<JobProposal>),
    /// It stays behind.
    Stays(StayReason),
}

/// The job of an entry.
#[derive(Debug)]
pub(crate) struct JobProposal {
    /// With its time as it is.
    pub(crate) job: Job,
    /// The expression that is proposed, if it is another one.
    pub(crate) new_cron: Option<String>,
}

/// Why a line stays behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StayReason {
    /// The line could not be read.
    BadLine(String),
    /// It never starts by the clock.
    Skipped(SkipReason),
    /// It runs as a user that Evenbeat is not.
    OtherUser(String),
    /// It gets input from the crontab.
    Input,
    /// It needs a shell, and jobs may not use one here.
    NeedsShell,
    /// A job of that name is already here.
    Exists(JobKey),
    /// The job would not be valid.
    Invalid(String),
}

impl StayReason {
    /// For people to read.
    pub(crate) fn text(&self) -> String {
        match self {
            StayReason::BadLine(message) | StayReason::Invalid(message) => message.clone(),
            StayReason::Skipped(SkipReason::Reboot) => "runs at boot, not by the clock".to_owned(),
            StayReason::Skipped(SkipReason::NoSuchDate) => {
                "its date does not exist, so it never runs".to_owned()
            }
            StayReason::OtherUser(user) => format!("runs as {user}; Evenbeat runs commands as its own user"),
            StayReason::Input => "gets its input after a %; put that into a script".to_owned(),
            StayReason::NeedsShell => {
                "needs a shell; wrap it in a script, or set commands.allow_shell = true".to_owned()
            }
            StayReason::Exists(key) => format!("there is already a job {key}"),
        }
    }
}

impl Takeover {
    /// The jobs that can be taken over, with the line of each.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = (usize, &JobProposal)> {
        self.entries.iter().filter_map(|it| match &it.fate {
            EntryFate::Job(job) => Some((it.line, &**job)),
            EntryFate::Stays(_) => None,
        })
    }

    /// Number of jobs that can be taken over.
    pub(crate) fn n_jobs(&self) -> usize {
        self.jobs().count()
    }

    /// Number of jobs that get another minute.
    pub(crate) fn n_moved(&self) -> usize {
        self.jobs().filter(|(_, it)| it.new_cron.is_some()).count()
    }
}

impl JobProposal {
    /// The job as it is put: with the proposed time, or with the one it has.
    pub(crate) fn job(&self, keeps_time: bool) -> Job {
        let mut job = self.job.clone();
        let new = self.new_cron.as_deref().filter(|_| !keeps_time).and_then(|it| CronExpr::parse(it).ok());
        if let Some(expr) = new {
            job.schedule = Schedule::Cron(Cron::new(expr, None));
        }
        job
    }
}

/// Reads a crontab and works out what would become of it; the errors of its lines if none of them can be read.
pub(crate) async fn read(app: &App, text: &str) -> Result<Result<Takeover, Vec<String>>, ViewError> {
    let now = app.intake.now();
    let source = SourceText { name: "crontab".to_owned(), text: text.to_owned() };
    let crontab = match crontab::read(&source, None, now, &mut Zones::new()) {
        Ok(crontab) => crontab,
        Err(errors) => {
            return Ok(Err(bad_lines(&errors).map(|(line, it)| format!("Line {line}: {it}")).collect()));
        }
    };
    let mut taken = BTreeSet::new();
    for keys in crontab.entries.chunks(evenbeat_core::store::BATCH_MAX) {
        let rows = app.store.jobs_of(keys.iter().map(|it| it.job.key.clone()).collect()).await?;
        taken.extend(rows.iter().filter(|row| !row.is_deleted).map(|row| row.job.key.clone()));
    }
    let may_use_shell = app.intake.policy().shell;
    let n_jobs_here = app.fleet.ledger().n_jobs();
    let worked_out = tokio::task::spawn_blocking(move || {
        let proposal = propose(&source, crontab, &taken, may_use_shell, now)?;
        Ok(Takeover { n_jobs_here, ..proposal })
    });
    let worked_out = worked_out.await.map_err(|error| ViewError::Bug(error.to_string()))?;
    worked_out.map(Ok)
}

fn propose(
    source: &SourceText,
    crontab: Crontab,
    taken: &BTreeSet<JobKey>,
    may_use_shell: bool,
    now: Timestamp,
) -> Result<Takeover, ViewError> {
    let mut zones = Zones::new();
    let mut entries = Vec::new();
    let mut variables = BTreeSet::new();
    let mut jobs: BTreeMap<usize, Result<Job, StayReason>> = BTreeMap::new();
    for entry in &crontab.entries {
        let job = job_of(entry, &crontab.variables, taken, may_use_shell, now, &mut zones);
        if let Ok(Job { target: Target::Command(it), .. }) = &job {
            variables.extend(it.env.keys().cloned());
        }
        jobs.insert(entry.line, job);
    }
    for it in &crontab.left_out {
        let fate = EntryFate::Stays(StayReason::Skipped(it.why));
        let schedule = match it.why {
            SkipReason::Reboot => "@reboot".to_owned(),
            SkipReason::NoSuchDate => String::new(),
        };
        entries.push(TakeoverEntry { line: it.line, schedule, command: it.command.clone(), fate });
    }
    let lines: Vec<&str> = source.text.lines().collect();
    for (line, message) in crontab.bad_lines.iter().flat_map(bad_lines) {
        let command = lines.get(line.saturating_sub(1)).map_or(String::new(), |it| it.trim().to_owned());
        let fate = EntryFate::Stays(StayReason::BadLine(message));
        entries.push(TakeoverEntry { line, schedule: String::new(), command, fate });
    }
    let mut file = FleetFile::of_crontab(source, crontab);
    let assumes_utc = file.assumes_utc;
    // What stays behind goes on where it is.
    for it in &mut file.jobs {
        it.is_pinned |= jobs.get(&it.line).is_none_or(Result::is_err);
    }
    let figures = AnalysisFigures::of(&file, midnight(&file.zone(), now), DAY_HOURS);
    let figures = figures.map_err(|error| ViewError::Bug(error.to_string()))?;
    let mut new: BTreeMap<usize, String> = BTreeMap::new();
    for it in &figures.changes {
        if let ChangeKind::Expression { new: expr, .. } = &it.what {
            new.insert(it.line, expr.clone());
        }
    }
    for it in file.jobs {
        let Some(job) = jobs.remove(&it.line) else { continue };
        let (schedule, command) = (cron_text(&it.job), command_of(&it.job));
        let fate = match job {
            Ok(job) => EntryFate::Job(Box::new(JobProposal { job, new_cron: new.remove(&it.line) })),
            Err(reason) => EntryFate::Stays(reason),
        };
        entries.push(TakeoverEntry { line: it.line, schedule, command, fate });
    }
    entries.sort_by_key(|it| it.line);
    Ok(Takeover { entries, figures, assumes_utc, variables, n_jobs_here: 0 })
}

/// The job of an entry as it would be put, with its time as it is.
fn job_of(
    entry: &CrontabEntry,
    variables: &[CrontabVariable],
    taken: &BTreeSet<JobKey>,
    may_use_shell: bool,
    now: Timestamp,
    zones: &mut Zones,
) -> Result<Job, StayReason> {
    let mut job = entry.job.clone();
    if let Some(user) = &entry.user {
        return Err(StayReason::OtherUser(user.clone()));
    }
    if entry.has_input {
        return Err(StayReason::Input);
    }
    let text = command_of(&job);
    let mut target = match plain_words(&text, entry.is_pinned) {
        Some(argv) => CommandTarget { argv, ..CommandTarget::default() },
        None if may_use_shell => CommandTarget { argv: vec![text], shell: true, ..CommandTarget::default() },
        None => return Err(StayReason::NeedsShell),
    };
    let above = variables.iter().filter(|it| it.line < entry.line && !NOT_TAKEN.contains(&it.name.as_str()));
    target.env = above.map(|it| (it.name.clone(), it.value.clone())).collect();
    job.target = Target::Command(target);
    if taken.contains(&job.key) {
        return Err(StayReason::Exists(job.key));
    }
    // As strictly as any other definition.
    match JobSpec::read(&written(&job)).validate(now, zones) {
        Ok(valid) => Ok(valid.job),
        Err(faults) => Err(StayReason::Invalid(
            faults.first().map_or("the job would not be valid".to_owned(), |it| it.error.to_string()),
        )),
    }
}

/// The words of a command that needs no shell; none if it has anything that a shell would act on.
fn plain_words(command: &str, is_pinned: bool) -> Option<Vec<String>> {
    let command = if is_pinned { command.rsplit_once('#')?.0 } else { command };
    let acts_on = |it: char| "|&;<>()$`\\\"'*?[]{}!\n".contains(it) || it.is_control() && it != '\t';
    let words: Vec<&str> = command.split_ascii_whitespace().collect();
    let first = *words.first()?;
    let is_plain = !command.contains(acts_on)
        && !words.iter().any(|it| it.starts_with(['#', '~']))
        && !first.contains('=')
        && !SHELL_WORDS.contains(&first);
    is_plain.then(|| words.into_iter().map(str::to_owned).collect())
}

fn command_of(job: &Job) -> String {
    match &job.target {
        Target::Command(it) => it.argv.join(" "),
        Target::Http(_) | Target::Queue(_) => String::new(),
    }
}

fn cron_text(job: &Job) -> String {
    match &job.schedule {
        Schedule::Cron(cron) => cron.expr().to_string(),
        _ => String::new(),
    }
}

fn bad_lines(errors: &Diagnostics) -> impl Iterator<Item = (usize, String)> {
    errors.iter().map(|it| {
        let line = errors.positions_of(it).map_or(0, |(start, _)| start.line);
        (line, it.message.clone())
    })
}

/// The last midnight of a zone, so that the hours of the figures are those of the day.
fn midnight(zone: &Zone, now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()) - Duration::from_secs(i64::from(zone.local(now).second_of_day))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takeover(text: &str, taken: &[&str], may_use_shell: bool) -> Takeover {
        let source = SourceText { name: "crontab".to_owned(), text: text.to_owned() };
        let now = "2026-02-04T10:00:00Z".parse().unwrap();
        let crontab = crontab::read(&source, None, now, &mut Zones::new()).unwrap();
        let taken = taken.iter().map(|it| it.parse().unwrap()).collect();
        propose(&source, crontab, &taken, may_use_shell, now).unwrap()
    }

    #[track_caller]
    fn check(text: &str, taken: &[&str], may_use_shell: bool, expected: &[&str]) {
        let found = takeover(text, taken, may_use_shell);
        let shown: Vec<String> = found
            .entries
            .iter()
            .map(|it| match &it.fate {
                EntryFate::Job(proposal) => {
                    let Target::Command(target) = &proposal.job.target else { panic!("{:?}", proposal.job) };
                    let shell = if target.shell { "sh: " } else { "" };
                    format!("{} {} = {shell}{}", it.line, proposal.job.key, target.argv.join("|"))
                }
                EntryFate::Stays(reason) => format!("{} stays: {}", it.line, reason.text()),
            })
            .collect();
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn plain_commands_become_jobs_without_a_shell() {
        check(
            "0 3 * * * /srv/bin/backup --all  daily\n",
            &[],
            false,
            &["1 backup-daily = /srv/bin/backup|--all|daily"],
        );
        check("0 3 * * * backup # pin\n", &[], false, &["1 backup = backup"]);
    }

    #[test]
    fn what_needs_a_shell_stays_unless_it_is_allowed() {
        let stays = "1 stays: needs a shell; wrap it in a script, or set commands.allow_shell = true";
        for command in [
            "a | b",
            "a && b",
            "a > /dev/null 2>&1",
            "cd /srv",
            "A=b c",
            "echo $HOME",
            "ls *.txt",
            "a 'b c'",
            "~/a",
        ] {
            check(&format!("0 3 * * * {command}\n"), &[], false, &[stays]);
        }
        check("0 3 * * * a | b\n", &[], true, &["1 a = sh: a | b"]);
    }

    #[test]
    fn every_line_that_stays_says_why() {
        check(
            "@reboot warm\n0 0 31 2 * off\n60 * * * * bad\n5 4 * * * mail%hello\n0 3 * * * backup\n1 3 * * * tidy\n",
            &["backup"],
            false,
            &[
                "1 stays: runs at boot, not by the clock",
                "2 stays: its date does not exist, so it never runs",
                "3 stays: `60` is out of range for the minute field (0 to 59)",
                "4 stays: gets its input after a %; put that into a script",
                "5 stays: there is already a job backup",
                "6 tidy = tidy",
            ],
        );
        check(
            "17 * * * * root /srv/a\n",
            &[],
            true,
            &["1 stays: runs as root; Evenbeat runs commands as its own user"],
        );
    }

    #[test]
    fn variables_are_for_the_lines_below_them() {
        let found = takeover("MAILTO=ops\n0 1 * * * a\nPATH=/opt/bin\nX=1\n0 2 * * * b\n", &[], false);
        let env: Vec<usize> = found
            .jobs()
            .map(|(_, it)| match &it.job.target {
                Target::Command(target) => target.env.len(),
                _ => 0,
            })
            .collect();
        assert_eq!(env, [0, 2]);
        assert_eq!(found.variables.iter().map(String::as_str).collect::<Vec<_>>(), ["PATH", "X"]);
    }

    #[test]
    fn the_proposal_spreads_what_is_taken_over_and_leaves_the_rest() {
        let text = "0 * * * * a\n0 * * * * b\n0 * * * * c\n0 * * * * d | e\n";
        let found = takeover(text, &[], false);
        assert_eq!((found.n_jobs(), found.n_moved()), (3, 3));
        assert!(found.figures.as_is.score < found.figures.proposed.score, "{:?}", found.figures);
        assert_eq!(found.figures.as_is.peak_minute.n_starts, 4);
        assert_eq!(found.figures.proposed.peak_minute.n_starts, 1);
        let (_, first) = found.jobs().next().unwrap();
        assert_eq!(Some(cron_text(&first.job(false))), first.new_cron);
        assert_eq!(first.job(true), first.job);
    }
}
