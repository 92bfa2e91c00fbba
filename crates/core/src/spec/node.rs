//! A value of a spec with its path, which is spelled out only when needed.

use crate::value::{Path, Value};

/// The deepest path that is looked at: `blackout_periods[0].days[1]`.
const STEPS_MAX: usize = 4;

/// A value and its canonical path.
///
/// The path is kept as a row of borrowed steps: a million jobs are read at start, and hardly a value of
/// them is ever spoken of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    steps: [Option<NodeStep<'a>>; STEPS_MAX],
}

#[derive(Clone, Copy, Debug)]
enum NodeStep<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Node<'a> {
    /// A field of the job.
    pub(super) fn field(field: &'a str, value: &'a Value) -> Node<'a> {
        Node { value, steps: [Some(NodeStep::Key(field)), None, None, None] }
    }

    /// An entry of this table, whatever it holds.
    pub(super) fn entry(&self, key: &'a str, value: &'a Value) -> Node<'a> {
        self.below(NodeStep::Key(key), value)
    }

    /// An element of this list.
    pub(super) fn element(&self, idx: usize, value: &'a Value) -> Node<'a> {
        self.below(NodeStep::Index(idx), value)
    }

    /// An entry of this table, if it was written; null is not.
    pub(super) fn get(&self, key: &'static str) -> Option<Node<'a>> {
        let value = self.value.as_table()?.get(key).filter(|value| **value != Value::Null)?;
        Some(self.entry(key, value))
    }

    /// Whether it is this field of the job.
    pub(super) fn is(&self, field: &str) -> bool {
        matches!(self.steps, [Some(NodeStep::Key(key)), None, ..] if key == field)
    }

    /// Where it stands.
    pub(super) fn path(&self) -> Path {
        self.steps.iter().flatten().fold(Path::root(), |path, step| match step {
            NodeStep::Key(key) => path.key(key),
            NodeStep::Index(idx) => path.index(*idx),
        })
    }

    /// What would be further down than there are steps stands where its parent does.
    fn below(&self, step: NodeStep<'a>, value: &'a Value) -> Node<'a> {
        let mut steps = self.steps;
        if let Some(free) = steps.iter_mut().find(|step| step.is_none()) {
            *free = Some(step);
        }
        Node { value, steps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_knows_its_path() {
        let value = Value::Null;
        let field = Node::field("blackout_periods", &value);
        assert!(field.is("blackout_periods"));
        let day = field.element(1, &value).entry("days", &value).element(0, &value);
        assert!(!day.is("blackout_periods"));
        assert_eq!(day.path().to_string(), "blackout_periods[1].days[0]");
        assert_eq!(day.entry("x", &value).path(), day.path());
    }
}
