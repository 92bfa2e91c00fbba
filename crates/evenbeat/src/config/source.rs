//! The source of a value: the file, a variable or a flag.

use std::ops::Range;

use super::error::Location;
use super::show::ValueOrigin;
use crate::jobfile::SourceText;

/// The precedence of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    PlainVariable,
    File,
    Variable,
    Flag,
}

/// The source that is being read.
#[derive(Clone, Copy)]
pub(super) enum ValueSource<'a> {
    File(&'a SourceText),
    /// A variable or a flag, and its value if that is TOML.
    Named {
        by: &'a str,
        toml: Option<&'a str>,
        precedence: Precedence,
    },
}

impl ValueSource<'_> {
    pub(super) fn location(self, span: Range<usize>) -> Location {
        match self {
            ValueSource::File(_) => Location::File(Some(span)),
            ValueSource::Named { by, toml, .. } => {
                Location::Named { by: by.to_owned(), part: toml.map(|text| (text.to_owned(), span)) }
            }
        }
    }

    pub(super) fn origin(self, span: &Range<usize>) -> ValueOrigin {
        match self {
            ValueSource::File(file) => {
                let before = file.text.bytes().take(span.start);
                ValueOrigin::File { line: before.filter(|it| *it == b'\n').count() + 1 }
            }
            ValueSource::Named { by, .. } => ValueOrigin::Named(by.to_owned()),
        }
    }

    pub(super) fn precedence(self) -> Precedence {
        match self {
            ValueSource::File(_) => Precedence::File,
            ValueSource::Named { precedence, .. } => precedence,
        }
    }
}
