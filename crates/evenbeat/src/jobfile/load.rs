//! Loads several job files together: all jobs, or all errors.

use std::collections::BTreeMap;

use evenbeat_core::job::{CommandTarget, Job, Target};
use evenbeat_core::nearest::{nearest, shortened};
use evenbeat_core::spec::{JobSpec, Origin, Place, SpecError, Warning};
use evenbeat_core::time::Timestamp;
use evenbeat_core::value::{Path, Table, Value};
use evenbeat_core::zone::Zones;

use super::diagnostic::{Diagnostic, Diagnostics, Note, Severity};
use super::fault::Context;
use super::layout::{Layout, layout};
use super::source::{FILE_BYTES_MAX, LineIndex, SourceText};
use super::tree::{self, TextDescription, TomlTree};

/// The jobs of some files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadedFiles {
    /// The files, in the given order.
    pub files: Vec<JobFile>,
    /// Warnings.
    pub warnings: Diagnostics,
    /// Errors for jobs that this version cannot run. Commands that only need schedules ignore them.
    pub unsupported: Diagnostics,
}

impl LoadedFiles {
    /// Fails if this version cannot run all jobs.
    pub fn supported(self) -> Result<LoadedFiles, Diagnostics> {
        if self.unsupported.is_empty() { Ok(self) } else { Err(self.unsupported) }
    }
}

/// The jobs of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// The name of the file.
    pub name: String,
    /// Its jobs, in order.
    pub jobs: Vec<LoadedJob>,
}

/// One job of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedJob {
    /// The job.
    pub job: Job,
    /// The definition, including template and defaults.
    pub spec: JobSpec,
    /// Warnings about this job. They are also part of the warnings of all files.
    pub warnings: Vec<Warning>,
    /// Line number.
    pub line: usize,
}

/// Reads job files together, so that duplicate keys are found across files.
pub fn load(files: &[SourceText], now: Timestamp, zones: &mut Zones) -> Result<LoadedFiles, Diagnostics> {
    let keys = BTreeMap::new();
    let (errors, warnings, unsupported) = (Vec::new(), Vec::new(), Vec::new());
    let mut loader = FileLoader { now, zones, keys, errors, warnings, unsupported };
    let mut loaded = Vec::new();
    for (file_idx, file) in files.iter().enumerate() {
        loaded.push(JobFile { name: file.name.clone(), jobs: loader.file(file, file_idx) });
    }
    if loader.errors.is_empty() {
        return Ok(LoadedFiles {
            files: loaded,
            warnings: Diagnostics::new(files, loader.warnings),
            unsupported: Diagnostics::new(files, loader.unsupported),
        });
    }
    Err(Diagnostics::new(files, loader.errors))
}

struct FileLoader<'z> {
    now: Timestamp,
    zones: &'z mut Zones,
    /// Where each key was first used.
    keys: BTreeMap<String, Note>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    unsupported: Vec<Diagnostic>,
}

impl FileLoader<'_> {
    fn file(&mut self, file: &SourceText, file_idx: usize) -> Vec<LoadedJob> {
        let lines = LineIndex::of(&file.text);
        let Some(tree) = self.tree(file, &lines, file_idx) else { return Vec::new() };
        let (layout, faults) = layout(&tree, file_idx);
        self.errors.extend(faults);
        let context = Context { text: &file.text, file_idx, file: &tree.spans, job: None };

        let none = Table::new();
        let defaults = JobSpec::read_from(Origin::Defaults, layout.defaults.unwrap_or(&none));
        let templates: BTreeMap<&str, JobSpec> = layout
            .templates
            .iter()
            .map(|(name, table)| (*name, JobSpec::read_from(Origin::Template((*name).to_owned()), table)))
            .collect();
        for spec in templates.values().chain([&defaults]) {
            let faults = spec.faults_as_defaults(self.now, self.zones);
            self.errors.extend(faults.into_iter().map(|fault| context.fault(fault)));
        }
        self.jobs(&lines, context, &layout, &templates, &defaults)
    }

    fn tree(&mut self, file: &SourceText, lines: &LineIndex, file_idx: usize) -> Option<TomlTree> {
        let fault = |span, message, help| Diagnostic {
            severity: Severity::Error,
            file_idx,
            span,
            message,
            label: None,
            help,
            field: None,
            note: None,
        };
        if FILE_BYTES_MAX < file.text.len() {
            let message =
                format!("the file has {} bytes, more than the {FILE_BYTES_MAX} allowed", file.text.len());
            self.errors.push(fault(None, message, Some("split it into several files".to_owned())));
            return None;
        }
        match tree::parse(&file.text, lines, TextDescription::job_file(&file.text)) {
            Ok(tree) => Some(tree),
            Err(errors) => {
                let errors = errors.into_iter().map(|it| fault(Some(it.span), it.message, it.help));
                self.errors.extend(errors);
                None
            }
        }
    }

    fn jobs(
        &mut self,
        lines: &LineIndex,
        context: Context<'_>,
        layout: &Layout<'_>,
        templates: &BTreeMap<&str, JobSpec>,
        defaults: &JobSpec,
    ) -> Vec<LoadedJob> {
        let mut jobs = Vec::new();
        for (idx, (table, spans)) in layout.jobs.iter().enumerate() {
            let context = Context { job: Some((spans, idx)), ..context };
            let mut own = (*table).clone();
            let picked = own.remove("template").map(|name| self.template(&name, templates, context));
            let lacks_template = picked == Some(None);
            let mut spec = JobSpec::read(&own);
            if let Some(Some(template)) = picked {
                spec = spec.over(template);
            }
            let spec = spec.over(defaults);
            self.key(&spec, context);
            match spec.validate(self.now, self.zones) {
                Ok(validated) => {
                    self.warnings.extend(validated.warnings.iter().map(|it| context.warning(it)));
                    self.target(&validated.job.target, &spec, context);
                    jobs.push(LoadedJob {
                        job: validated.job,
                        spec,
                        warnings: validated.warnings,
                        line: lines.line_idx(spans.value.start) + 1,
                    });
                }
                Err(faults) => {
                    // Do not also report fields that the template would have set.
                    let faults = faults.into_iter().filter(|fault| {
                        !lacks_template || !matches!(fault.error, SpecError::NoTarget | SpecError::NoSchedule)
                    });
                    self.errors.extend(faults.map(|fault| context.fault(fault)));
                }
            }
        }
        jobs
    }

    /// Reports targets that a node of this version cannot run.
    fn target(&mut self, target: &Target, spec: &JobSpec, context: Context<'_>) {
        let about = |severity, path: Path, message: String, label: &str, help: &str| {
            let place = spec.place_of(&path);
            Diagnostic {
                severity,
                file_idx: context.file_idx,
                span: Some(context.span(&place, true)),
                message,
                label: Some(label.to_owned()),
                help: Some(help.to_owned()),
                field: Some(context.field(&place)),
                note: None,
            }
        };
        let path = Path::root().key(target.kind());
        match target {
            Target::Command(CommandTarget { shell: false, .. }) => {}
            Target::Command(_) => self.warnings.push(about(
                Severity::Warning,
                path.key("shell"),
                "nodes reject `shell = true` unless their configuration allows it".to_owned(),
                "needs permission",
                "set `commands.allow_shell = true` in the configuration, or write the command as a list",
            )),
            Target::Http(_) | Target::Queue(_) => self.unsupported.push(about(
                Severity::Error,
                path,
                format!("`{}` targets are not supported by this version", target.kind()),
                "not supported yet",
                "write a `command` that makes the call, or remove the job",
            )),
        }
    }

    /// The template of a job. Reports an unknown one.
    fn template<'t>(
        &mut self,
        name: &Value,
        templates: &'t BTreeMap<&str, JobSpec>,
        context: Context<'_>,
    ) -> Option<&'t JobSpec> {
        let found = name.as_text().and_then(|name| templates.get(name));
        if found.is_none() {
            let (message, help) = match name.as_text() {
                Some(name) => unknown_template(name, templates),
                None => (
                    format!("`template` must be the name of a template, not {}", name.kind()),
                    "write `template = \"NAME\"`".to_owned(),
                ),
            };
            let place = Place::new(Origin::Job, Path::root().key("template"));
            self.errors.push(Diagnostic {
                severity: Severity::Error,
                file_idx: context.file_idx,
                span: Some(context.span(&place, false)),
                message,
                label: Some("no such template".to_owned()),
                help: Some(help),
                field: Some(context.field(&place)),
                note: None,
            });
        }
        found
    }

    /// Records the key of a job, and reports a duplicate.
    fn key(&mut self, spec: &JobSpec, context: Context<'_>) {
        let text = |field: &str| spec.table().get(field).and_then(Value::as_text);
        let Some(name) = text("name") else { return };
        let key = match text("configuration") {
            Some(configuration) => format!("{name}@{configuration}"),
            None => name.to_owned(),
        };
        let place = spec.place_of(&Path::root().key("name"));
        let whole = Place { part: None, ..place };
        let span = context.span(&whole, false);
        let Some(first) = self.keys.get(&key) else {
            let label = "first used here".to_owned();
            self.keys.insert(key, Note { file_idx: context.file_idx, span, label });
            return;
        };
        self.errors.push(Diagnostic {
            severity: Severity::Error,
            file_idx: context.file_idx,
            span: Some(span),
            message: format!("duplicate job key `{}`", shortened(&key)),
            label: Some("used again here".to_owned()),
            help: Some(format!(
                "rename one of the jobs, or set a `configuration`, as in `{}@test`",
                shortened(name)
            )),
            field: Some(context.field(&whole)),
            note: Some(first.clone()),
        });
    }
}

fn unknown_template(name: &str, templates: &BTreeMap<&str, JobSpec>) -> (String, String) {
    let message = format!("this file has no template `{}`", shortened(name));
    let help = match nearest(name, templates.keys().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if templates.is_empty() => format!("add a table `[template.{}]` to this file", shortened(name)),
        None => {
            let names: Vec<String> = templates.keys().map(|name| format!("`{name}`")).collect();
            format!("the templates of this file are {}", names.join(", "))
        }
    };
    (message, help)
}
