//! `evenbeat check FILE…`: validates job files.

use std::io::{self, Write};
use std::path::PathBuf;

use evenbeat_core::alert::AlertRules;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zones;
use serde_json::{Value as Json, json};

use super::job_file::{not_a_crontab, read};
use crate::cli::Exit;
use crate::config::{self, ConfigFlags};
use crate::crontab::looks_like_crontab;
use crate::jobfile::{Diagnostic, Diagnostics, LoadedFiles, SourceText, load};

/// Checks all files together. As text, errors and warnings go to `err`, and one line per valid file to `out`. As JSON,
/// one document goes to `out`. `-` is standard input.
pub fn run(
    files: &[PathBuf],
    json: bool,
    color: bool,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    finish(&Findings::of(files, now), json, color, out, err)
}

/// The same, and checks against a node's configuration who is alerted about the jobs.
pub(crate) fn run_with_config(
    files: &[PathBuf],
    json: bool,
    config: PathBuf,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    match config::load(&ConfigFlags { file: Some(config), flags: Vec::new() }) {
        Ok(loaded) => {
            let mut findings = Findings::of(files, now);
            findings.listen(&loaded.config.alerts.rules);
            finish(&findings, json, true, out, err)
        }
        Err(_) => {
            writeln!(err, "error: the configuration is not valid; run `evenbeat config --check` to see why")?;
            Ok(Exit::Usage)
        }
    }
}

fn finish(
    findings: &Findings,
    json: bool,
    color: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    if json {
        writeln!(out, "{:#}", findings.report())?;
    } else {
        findings.show(color, out, err)?;
    }
    let has_lost_channels = findings.alerts.as_ref().is_some_and(|it| !it.unknown.is_empty());
    Ok(match (findings.unread.is_empty(), findings.faults.is_empty()) {
        (true, true) if has_lost_channels => Exit::Failed,
        (true, true) => Exit::Ok,
        (true, false) => Exit::Failed,
        (false, _) => Exit::Usage,
    })
}

struct Findings {
    /// Files that could not be read, and why.
    unread: Vec<(String, String)>,
    faults: Diagnostics,
    /// The valid files.
    good: LoadedFiles,
    /// Who is alerted, if a configuration says.
    alerts: Option<AlertFindings>,
}

/// Jobs whose alerts do not go where one would expect.
#[derive(Default)]
struct AlertFindings {
    /// Jobs that want no alerts, or all of them if there are no channels.
    silent: Vec<String>,
    /// Jobs and the channels that they name and that do not exist.
    unknown: Vec<(String, String)>,
    has_channels: bool,
}

impl Findings {
    fn of(files: &[PathBuf], now: Timestamp) -> Findings {
        let mut unread = Vec::new();
        let mut sources = Vec::new();
        for path in files {
            match read(path) {
                Ok(source) if looks_like_crontab(&source.text) => {
                    unread.push((path.display().to_string(), not_a_crontab(path)));
                }
                Ok(source) => sources.push(source),
                Err(message) => unread.push((path.display().to_string(), message)),
            }
        }
        let mut zones = Zones::new();
        let mut faults = Diagnostics::default();
        let good = load(&sources, now, &mut zones).and_then(LoadedFiles::supported).unwrap_or_else(|found| {
            // Report the valid files even if another one is invalid.
            let is_good = |idx: &usize| found.iter().all(|fault| fault.file_idx != *idx);
            let good: Vec<SourceText> =
                (0..sources.len()).filter(is_good).filter_map(|idx| sources.get(idx).cloned()).collect();
            faults = found;
            load(&good, now, &mut zones).unwrap_or_default()
        });
        Findings { unread, faults, good, alerts: None }
    }

    /// Looks up who is alerted about each job.
    fn listen(&mut self, rules: &AlertRules) {
        let mut found = AlertFindings { has_channels: rules.is_on(), ..AlertFindings::default() };
        for job in self.good.files.iter().flat_map(|file| &file.jobs).map(|it| &it.job) {
            let own = job.alerts.channels.as_deref();
            if own.is_some_and(<[_]>::is_empty) || own.is_none() && !rules.is_on() {
                found.silent.push(job.key.to_string());
            }
            let unknown = own.unwrap_or_default().iter().filter(|it| !rules.channels.contains_key(*it));
            found.unknown.extend(unknown.map(|it| (job.key.to_string(), it.to_string())));
        }
        self.alerts = Some(found);
    }

    fn all_good(&self) -> bool {
        self.unread.is_empty() && self.faults.is_empty()
    }

    fn show(&self, color: bool, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
        for (name, message) in &self.unread {
            writeln!(err, "error: {name} {message}\n")?;
        }
        write!(err, "{}", self.faults.render(color))?;
        write!(err, "{}", self.good.warnings.render(color))?;
        for (file_idx, file) in self.good.files.iter().enumerate() {
            let n_warnings = self.good.warnings.iter().filter(|it| it.file_idx == file_idx).count();
            let warnings = match n_warnings {
                0 => String::new(),
                n => format!(", {}", counted(n, "warning")),
            };
            writeln!(out, "{}: {}{warnings}", file.name, counted(file.jobs.len(), "job"))?;
        }
        if let Some(alerts) = &self.alerts {
            alerts.show(out, err)?;
        }
        if !self.all_good() {
            writeln!(err, "{}", counted(self.unread.len() + self.faults.len(), "error"))?;
        }
        Ok(())
    }

    fn report(&self) -> Json {
        let unread = self.unread.iter().map(|(name, message)| {
            json!({"severity": "error", "file": name, "line": null, "column": null, "end_line": null,
                   "end_column": null, "field": null, "message": format!("{name} {message}"), "hint": null})
        });
        let faults = self.faults.iter().map(|it| entry(&self.faults, it));
        let warnings = self.good.warnings.iter().map(|it| entry(&self.good.warnings, it));
        let diagnostics: Vec<Json> = unread.chain(faults).chain(warnings).collect();
        let good = self.good.files.iter().map(|it| json!({"file": it.name, "jobs": it.jobs.len()}));
        let good: Vec<Json> = good.collect();
        let mut report = json!({"ok": self.all_good(), "good_files": good, "diagnostics": diagnostics});
        if let Some(alerts) = &self.alerts {
            let unknown: Vec<Json> =
                alerts.unknown.iter().map(|(job, channel)| json!({"job": job, "channel": channel})).collect();
            report["ok"] = Json::Bool(self.all_good() && unknown.is_empty());
            report["alerts"] = json!({"none": alerts.silent, "unknown_channels": unknown});
        }
        report
    }
}

impl AlertFindings {
    fn show(&self, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
        for (job, channel) in &self.unknown {
            writeln!(
                err,
                "error: job `{job}` names the channel `{channel}`, which the configuration does not have"
            )?;
        }
        if !self.silent.is_empty() {
            let why = if self.has_channels { "`alerts = \"none\"`" } else { "there are no channels" };
            let jobs = counted(self.silent.len(), "job");
            writeln!(out, "no alerts about {jobs} ({why}): {}", self.silent.join(", "))?;
        }
        Ok(())
    }
}

fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

fn entry(all: &Diagnostics, diagnostic: &Diagnostic) -> Json {
    let positions = all.positions_of(diagnostic);
    let (start, end) = (positions.map(|it| it.0), positions.map(|it| it.1));
    json!({
        "severity": diagnostic.severity.as_str(),
        "file": all.source_of(diagnostic).map(|it| &it.name),
        "line": start.map(|it| it.line),
        "column": start.map(|it| it.column),
        "end_line": end.map(|it| it.line),
        "end_column": end.map(|it| it.column),
        "field": diagnostic.field,
        "message": diagnostic.message,
        "hint": diagnostic.help,
    })
}
