//! The tables of a job file: `[[job]]`, `[defaults]`, `[template.NAME]`, and nothing else.

use std::collections::BTreeMap;

use evenbeat_core::nearest::nearest;
use evenbeat_core::value::{Step, Table, Value};

use super::diagnostic::{Diagnostic, Severity};
use super::spans::Spans;
use super::tree::TomlTree;

/// The tables of a file.
#[derive(Debug, Default)]
pub(super) struct Layout<'a> {
    pub(super) defaults: Option<&'a Table>,
    pub(super) templates: BTreeMap<&'a str, &'a Table>,
    pub(super) jobs: Vec<(&'a Table, &'a Spans)>,
}

/// Sorts the tables of a file, and reports unknown ones.
pub(super) fn layout(tree: &TomlTree, file_idx: usize) -> (Layout<'_>, Vec<Diagnostic>) {
    let mut builder = LayoutBuilder { file_idx, layout: Layout::default(), diagnostics: Vec::new() };
    for (name, value) in &tree.table {
        let Some(spans) = tree.spans.below.get(&Step::Key(name.clone())) else { continue };
        match (name.as_str(), value) {
            ("job", Value::List(jobs)) => builder.jobs(jobs, spans),
            ("job", Value::Table(_)) => builder.fault(
                spans.value.clone(),
                name,
                "`[job]` is a single table, but jobs are a list".to_owned(),
                "write `[[job]]`, with two brackets",
            ),
            ("defaults", Value::Table(table)) => builder.layout.defaults = Some(table),
            ("defaults", _) => builder.fault(
                spans.value.clone(),
                name,
                "`defaults` must be a table".to_owned(),
                "write `[defaults]`, with one bracket",
            ),
            ("template", Value::Table(templates)) => builder.templates(templates, spans),
            ("job" | "template", _) => builder.fault(
                spans.value.clone(),
                name,
                format!("`{name}` must be a table"),
                "write each job as `[[job]]`, each template as `[template.NAME]`",
            ),
            _ => builder.unknown(name, value, spans),
        }
    }
    (builder.layout, builder.diagnostics)
}

struct LayoutBuilder<'a> {
    file_idx: usize,
    layout: Layout<'a>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> LayoutBuilder<'a> {
    fn jobs(&mut self, jobs: &'a [Value], spans: &'a Spans) {
        for (idx, job) in jobs.iter().enumerate() {
            let Some(spans) = spans.below.get(&Step::Index(idx)) else { continue };
            match job {
                Value::Table(table) => self.layout.jobs.push((table, spans)),
                other => self.fault(
                    spans.value.clone(),
                    &format!("job[{idx}]"),
                    format!("a job must be a table, not {}", other.kind()),
                    "write each job as `[[job]]`",
                ),
            }
        }
    }

    fn templates(&mut self, templates: &'a Table, spans: &'a Spans) {
        for (name, template) in templates {
            let Some(spans) = spans.below.get(&Step::Key(name.clone())) else { continue };
            match template {
                Value::Table(table) => {
                    self.layout.templates.insert(name, table);
                }
                _ => self.fault(
                    spans.key.clone().unwrap_or(spans.value.clone()),
                    &format!("template.{name}"),
                    format!("`{name}` is not inside a template; a template needs a name"),
                    "write `[template.NAME]`, and `template = \"NAME\"` in a job",
                ),
            }
        }
    }

    fn unknown(&mut self, name: &str, value: &Value, spans: &Spans) {
        let is_field = !matches!(value, Value::Table(_) | Value::List(_));
        let of_tables = matches!(value, Value::List(list) if list.iter().any(|it| it.as_table().is_some()));
        let near = nearest(name, ["job", "defaults", "template"]);
        let (message, help) = match near {
            _ if is_field => (
                format!("`{name}` is outside of any table"),
                "write it under a `[[job]]`, or under `[defaults]` to apply it to all jobs",
            ),
            Some("job") => (format!("unknown table `{name}`"), "did you mean `[[job]]`?"),
            Some("defaults") => (format!("unknown table `{name}`"), "did you mean `[defaults]`?"),
            Some(_) => (format!("unknown table `{name}`"), "did you mean `[template.NAME]`?"),
            None if of_tables => (format!("unknown table `{name}`"), "write each job as `[[job]]`"),
            None => (
                format!("unknown table `{name}`"),
                "a job file has `[[job]]`, `[defaults]` and `[template.NAME]`",
            ),
        };
        let span = if is_field { spans.key.clone() } else { None };
        self.fault(span.unwrap_or(spans.value.clone()), name, message, help);
    }

    fn fault(&mut self, span: std::ops::Range<usize>, field: &str, message: String, help: &str) {
        self.diagnostics.push(Diagnostic {
            severity: Severity::Error,
            file_idx: self.file_idx,
            span: Some(span),
            message,
            label: None,
            help: Some(help.to_owned()),
            field: Some(field.to_owned()),
            note: None,
        });
    }
}
