//! A walk over a spec that gathers faults and goes on.

use std::fmt::{self, Display};
use std::ops::Range;
use std::str::FromStr;

use super::fields::kind_of;
use super::node::Node;
use super::scalar;
use super::{JobSpec, SpecError, SpecFault};
use crate::nearest::nearest;
use crate::time::Duration;
use crate::value::{Path, Table, Value};

/// People do not write longer lists than this.
pub(super) const LIST_MAX: usize = 1_000;

/// How many levels a free value may have.
pub(super) const DEPTH_MAX: usize = 32;

/// Gathers faults, each at the place where it was written.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) spec: &'a JobSpec,
    pub(super) faults: Vec<SpecFault>,
    /// The marks of the names that were written: most fields that are read were not.
    marks: u64,
}

/// One bit for a name; several have the same.
fn mark(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let (first, last) = (bytes.first().copied().unwrap_or(0), bytes.last().copied().unwrap_or(0));
    1 << ((usize::from(first) * 7 + usize::from(last) * 3 + bytes.len()) % 64)
}

impl<'a> Reader<'a> {
    pub(super) fn new(spec: &'a JobSpec) -> Reader<'a> {
        let marks = spec.table.keys().fold(0, |marks, name| marks | mark(name));
        Reader { spec, faults: spec.faults.clone(), marks }
    }

    /// A field of the job, if it was written.
    pub(super) fn get(&self, field: &'static str) -> Option<Node<'a>> {
        if self.marks & mark(field) == 0 {
            return None;
        }
        let value = self.spec.table.get(field)?;
        Some(Node::field(field, value))
    }

    /// A path as its writer spelled it.
    pub(super) fn shown(&self, path: &Path) -> String {
        self.spec.place_of(path).path.to_string()
    }

    /// A value read by a function of [`scalar`]; a fault if it cannot be.
    pub(super) fn read<'v, T>(
        &mut self,
        node: &Node<'v>,
        read: impl FnOnce(&dyn Display, &'v Value) -> Result<T, SpecError>,
    ) -> Option<T> {
        match read(&WrittenPath { spec: self.spec, node }, node.value) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(&node.path(), error);
                None
            }
        }
    }

    /// A field read so; none if it was not written or cannot be read.
    pub(super) fn field<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&dyn Display, &'a Value) -> Result<T, SpecError>,
    ) -> Option<T> {
        let node = self.get(field)?;
        self.read(&node, read)
    }

    pub(super) fn duration(&mut self, field: &'static str) -> Option<Duration> {
        self.field(field, scalar::duration)
    }

    pub(super) fn truth(&mut self, field: &'static str) -> Option<bool> {
        self.field(field, scalar::truth)
    }

    /// A number that counts something, within the limits of the table.
    pub(super) fn count(&mut self, field: &'static str) -> Option<u32> {
        let kind = kind_of(field);
        self.field(field, |field, value| scalar::count(field, value, kind))
    }

    pub(super) fn name<T>(&mut self, field: &'static str) -> Option<T>
    where
        T: FromStr,
        SpecError: From<T::Err>,
    {
        self.field(field, scalar::parsed)
    }

    pub(super) fn word<T: Clone>(&mut self, field: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        self.field(field, |field, value| scalar::word(field, value, words))
    }

    /// The elements of a list.
    pub(super) fn list<'v>(
        &mut self,
        node: &Node<'v>,
        expected: &'static str,
        n_most: usize,
    ) -> Vec<Node<'v>> {
        let Value::List(values) = node.value else {
            let error = scalar::wrong_kind(&self.shown(&node.path()), expected, node.value);
            self.fault(&node.path(), error);
            return Vec::new();
        };
        if n_most < values.len() {
            let field = self.shown(&node.path());
            self.fault(&node.path(), SpecError::TooMany { field, n_found: values.len(), n_most });
            return Vec::new();
        }
        let node = |(idx, value)| node.element(idx, value);
        values.iter().enumerate().map(node).collect()
    }

    /// The entries of a table whose keys are free.
    pub(super) fn entries<'v>(&mut self, node: &Node<'v>) -> Vec<(&'v str, Node<'v>)> {
        let Value::Table(table) = node.value else {
            let error = scalar::wrong_kind(&self.shown(&node.path()), "a table", node.value);
            self.fault(&node.path(), error);
            return Vec::new();
        };
        let entry = |(key, value): (&'v String, &'v Value)| (key.as_str(), node.entry(key, value));
        table.iter().map(entry).collect()
    }

    /// An entry that a table must have; a fault if it was not written.
    pub(super) fn required<'v>(
        &mut self,
        node: &Node<'v>,
        field: &'static str,
        way_out: &'static str,
    ) -> Option<Node<'v>> {
        let entry = node.get(field);
        if entry.is_none() {
            let table = self.shown(&node.path());
            self.fault(&node.path(), SpecError::Missing { table, field, way_out });
        }
        entry
    }

    /// Reports the names in a table that mean nothing there.
    pub(super) fn known_only(
        &mut self,
        node: &Node<'_>,
        table: &Table,
        inside: &'static str,
        known: &[&'static str],
    ) {
        for name in table.keys().filter(|name| !known.contains(&name.as_str())) {
            let nearest = nearest(name, known.iter().copied()).map(str::to_owned);
            let field = crate::nearest::shortened(name);
            let (inside, known) = (Some(inside), known.to_vec());
            self.fault(
                &node.path().key(name),
                SpecError::UnknownField { field, inside, nearest, way_out: None, known },
            );
        }
    }

    /// Reports a value that is nested too deep to be handed on.
    pub(super) fn bounded_depth(&mut self, node: &Node<'_>) {
        if is_deeper_than(node.value, DEPTH_MAX) {
            let field = self.shown(&node.path());
            self.fault(&node.path(), SpecError::TooDeep { field, most: DEPTH_MAX });
        }
    }

    pub(super) fn fault(&mut self, path: &Path, error: SpecError) {
        self.faults.push(SpecFault { place: self.spec.place_of(path), other: None, error });
    }

    /// A fault in some bytes of a text.
    pub(super) fn fault_in(&mut self, path: &Path, part: Range<usize>, error: SpecError) {
        let place = self.spec.place_of(path).with_part(part);
        self.faults.push(SpecFault { place, other: None, error });
    }

    /// A fault that two places have together.
    pub(super) fn fault_between(&mut self, path: &Path, other: &Path, error: SpecError) {
        let other = Some(self.spec.place_of(other));
        self.faults.push(SpecFault { place: self.spec.place_of(path), other, error });
    }
}

/// The path of a value as its author spelled it.
struct WrittenPath<'a> {
    spec: &'a JobSpec,
    node: &'a Node<'a>,
}

impl Display for WrittenPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.place_of(&self.node.path()).path.fmt(f)
    }
}

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return matches!(value, Value::List(_) | Value::Table(_));
    };
    match value {
        Value::List(values) => values.iter().any(|value| is_deeper_than(value, below)),
        Value::Table(table) => table.values().any(|value| is_deeper_than(value, below)),
        _ => false,
    }
}
