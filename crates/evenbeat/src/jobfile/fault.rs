//! Finds the place in a file for an error in the tree.

use std::ops::Range;

use evenbeat_core::nearest::nearest;
use evenbeat_core::spec::{Origin, Place, SpecError, SpecFault, Warning};
use evenbeat_core::value::Step;

use super::diagnostic::{Diagnostic, Note, Severity};
use super::spans::Spans;

/// Where the tables of one job are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) text: &'a str,
    pub(super) file_idx: usize,
    /// The places of the whole file.
    pub(super) file: &'a Spans,
    /// The places of the job itself and its number; `None` for the defaults.
    pub(super) job: Option<(&'a Spans, usize)>,
}

impl Context<'_> {
    pub(super) fn fault(&self, fault: SpecFault) -> Diagnostic {
        let fault = self.in_order(fault);
        let error = &fault.error;
        let note = fault.other.as_ref().map(|other| Note {
            file_idx: self.file_idx,
            span: self.span(other, error.is_about_name()),
            label: error.label_of_other().to_owned(),
        });
        Diagnostic {
            severity: Severity::Error,
            file_idx: self.file_idx,
            span: Some(self.span(&fault.place, error.is_about_name())),
            message: error.to_string(),
            label: error.label().map(str::to_owned),
            help: template_hint(&fault).or_else(|| error.hint()),
            field: Some(self.field(&fault.place)),
            note,
        }
    }

    pub(super) fn warning(&self, warning: &Warning) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            file_idx: self.file_idx,
            span: Some(self.span(&warning.place, false)),
            message: warning.warning.to_string(),
            label: None,
            help: None,
            field: Some(self.field(&warning.place)),
            note: None,
        }
    }

    pub(super) fn span(&self, place: &Place, of_name: bool) -> Range<usize> {
        self.spans(place).span_of(self.text, place, of_name)
    }

    fn spans(&self, place: &Place) -> &Spans {
        let find = |keys: &[&str]| {
            keys.iter().try_fold(self.file, |spans, key| spans.below.get(&Step::Key((*key).to_owned())))
        };
        let found = match &place.origin {
            Origin::Job => self.job.map(|(spans, _)| spans),
            Origin::Defaults => find(&["defaults"]),
            Origin::Template(name) => find(&["template", name]),
        };
        found.unwrap_or(self.file)
    }

    pub(super) fn field(&self, place: &Place) -> String {
        let table = match &place.origin {
            Origin::Job => match self.job {
                Some((_, idx)) => format!("job[{idx}]"),
                None => "job".to_owned(),
            },
            Origin::Defaults => "defaults".to_owned(),
            Origin::Template(name) => format!("template.{name}"),
        };
        let path = place.path.to_string();
        if path.is_empty() { table } else { format!("{table}.{path}") }
    }

    /// Of two conflicting places, points at the later one in the file.
    fn in_order(&self, fault: SpecFault) -> SpecFault {
        let SpecFault { place, other: Some(other), error } = fault else { return fault };
        let start = |place: &Place| self.span(place, true).start;
        if start(&other) < start(&place) {
            return SpecFault { place, other: Some(other), error };
        }
        let error = match error {
            SpecError::WrittenTwice { field, first, second } => {
                SpecError::WrittenTwice { field, first: second, second: first }
            }
            SpecError::TwoTargets { first, second } => SpecError::TwoTargets { first: second, second: first },
            SpecError::TwoSchedules { first, second } => {
                SpecError::TwoSchedules { first: second, second: first }
            }
            // For these, the order does not matter.
            error => return SpecFault { place, other: Some(other), error },
        };
        SpecFault { place: other, other: Some(place), error }
    }
}

/// `template` exists only in job files, so the spec does not know it.
fn template_hint(fault: &SpecFault) -> Option<String> {
    let SpecError::UnknownField { field, inside: None, .. } = &fault.error else { return None };
    let near = nearest(field, ["template"])?;
    Some(match fault.place.origin {
        Origin::Job => format!("did you mean `{near}`?"),
        _ => "set the template of each job: write this under a `[[job]]`".to_owned(),
    })
}
