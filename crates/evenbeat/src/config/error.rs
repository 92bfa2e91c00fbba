//! An error in the configuration, with its location.

use std::ops::Range;

use super::mask::masked;
use super::value_type::ValueError;
use crate::jobfile::{Diagnostic, Diagnostics, Note, Severity, SourceText};

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Nowhere: the value follows from the machine.
    Machine,
    /// In the file, at these bytes; `None` for the file as a whole.
    File(Option<Range<usize>>),
    /// By a variable or a flag of this name.
    Named {
        /// The name of the variable or the flag.
        by: String,
        /// The bytes of its value, if only a part is meant.
        part: Option<(String, Range<usize>)>,
    },
    /// In a file that the configuration names.
    Other(String),
}

/// An error in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub location: Location,
    /// Another location that is involved.
    pub other: Option<Location>,
    /// What is wrong.
    pub message: String,
    /// A few words to show below the location.
    pub label: Option<String>,
    /// How to fix it.
    pub help: Option<String>,
    /// The key that is affected.
    pub key: Option<String>,
}

impl ConfigError {
    pub(super) fn new(location: Location, key: Option<String>, error: ValueError) -> ConfigError {
        let ValueError { message, label, help } = error;
        ConfigError { location, other: None, message, label, help, key }
    }

    /// Whether it comes from the command line.
    pub fn is_of_a_flag(&self) -> bool {
        matches!(&self.location, Location::Named { by, .. } if by.starts_with('-'))
    }
}

/// Converts errors to diagnostics, with the lines of the file and secrets masked.
pub fn diagnostics(file: Option<&SourceText>, errors: &[ConfigError]) -> Diagnostics {
    let mut list = Listing { sources: Vec::new() };
    if let Some(file) = file {
        list.sources.push(SourceText { name: file.name.clone(), text: masked(&file.text) });
    }
    let mut shown = Vec::new();
    for fault in errors {
        let (file_idx, span) = list.find(&fault.location);
        let note = fault.other.as_ref().map(|other| list.find(other)).and_then(|(file_idx, span)| {
            span.map(|span| Note { file_idx, span, label: "because of this".to_owned() })
        });
        shown.push(Diagnostic {
            severity: Severity::Error,
            file_idx,
            // A note is only shown beside a marked location.
            note: note.filter(|_| span.is_some()),
            span,
            message: fault.message.clone(),
            label: fault.label.clone(),
            help: fault.help.clone(),
            field: fault.key.clone(),
        });
    }
    Diagnostics::new(&list.sources, shown)
}

/// The sources that diagnostics refer to by number.
struct Listing {
    sources: Vec<SourceText>,
}

impl Listing {
    fn find(&mut self, location: &Location) -> (usize, Option<Range<usize>>) {
        match location {
            Location::Machine => (usize::MAX, None),
            Location::File(span) => (0, span.clone()),
            Location::Named { by, part } => {
                let (text, span) = part.clone().map_or((String::new(), None), |(text, at)| (text, Some(at)));
                (self.index_of(by, &masked(&text)), span)
            }
            Location::Other(name) => (self.index_of(name, ""), None),
        }
    }

    fn index_of(&mut self, name: &str, text: &str) -> usize {
        let is_same = |it: &SourceText| it.name == name && (it.text == text || text.is_empty());
        self.sources.iter().position(is_same).unwrap_or_else(|| {
            self.sources.push(SourceText { name: name.to_owned(), text: text.to_owned() });
            self.sources.len() - 1
        })
    }
}
