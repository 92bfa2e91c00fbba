//! People change a busy fleet, and every occurrence still comes to one fate.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::chaos::dice::{Dice, bound};
use crate::chaos::fleet::{Witness, is_sound, node_of, now};
use crate::chaos::history::Book;
use crate::chaos::node::Node;

#[test]
fn whatever_people_do_meanwhile_every_occurrence_has_one_fate() {
    let mut dice = Dice::new();
    let (n_jobs, seconds) = (bound("JOBS", 200), bound("SECONDS", 12));
    let witnesses: Vec<Witness> = (0..n_jobs)
        .map(|no| Witness::new(&format!("w{no}"), ["1s", "2s", "3s"][no as usize % 3], dice.below(3)))
        .collect();
    let mut node = node_of(&witnesses);
    node.start();
    let mut people = People { book: Book::open(&node), node: &node, witnesses, dice, n_done: 0 };
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        people.do_something();
    }
    let People { book, n_done, .. } = people;
    let figures = is_sound(&mut node, &book);
    assert!(0 < figures.n_starts && 0 < n_done, "{n_done} changes: {figures:?}");
    eprintln!("{n_done} changes in {seconds} s: {figures:?}");
}

/// Whoever has a key to the fleet.
struct People<'a> {
    book: Book,
    node: &'a Node,
    witnesses: Vec<Witness>,
    dice: Dice,
    n_done: u64,
}

impl People<'_> {
    fn do_something(&mut self) {
        let no = self.dice.below(self.witnesses.len() as u64) as usize;
        let key = self.witnesses[no].name.clone();
        match self.dice.below(10) {
            0 | 1 => drop(self.said("POST", &format!("{key}/pause"), "{}")),
            2..=4 => self.change(&key, "POST", &format!("{key}/resume"), ""),
            5 => {
                // Another rhythm, and another place.
                let every = ["1s", "2s", "3s"][self.dice.below(3) as usize];
                let is_same = every == self.witnesses[no].every;
                every.clone_into(&mut self.witnesses[no].every);
                let body = self.definition(no);
                if is_same {
                    self.put(&key, &body);
                } else {
                    self.change(&key, "PUT", &key, &body);
                }
            }
            6 => {
                // The same rhythm, and something else to do.
                self.witnesses[no].ticks = self.dice.below(60);
                let body = self.definition(no);
                self.put(&key, &body);
            }
            7 if self.dice.one_in(4) => self.change(&key, "DELETE", &key, ""),
            _ => {
                if let Some(answer) = self.said("POST", &format!("{key}/trigger"), "{}") {
                    let id = answer["id"].as_str().unwrap().to_owned();
                    self.book.0.get_mut(&key).unwrap().asked.push(id);
                }
            }
        }
    }

    fn definition(&self, no: usize) -> String {
        let it = &self.witnesses[no];
        let command: Json = serde_json::from_str(&it.command(&self.node.witnesses())).unwrap();
        json!({ "every": it.every, "command": command, "retry": { "delays": ["1s"] } }).to_string()
    }

    /// The same rhythm: the grid stays. A job that was removed is there again, on a new one.
    fn put(&mut self, key: &str, body: &str) {
        if self.book.0[key].is_removed {
            self.change(key, "PUT", key, body);
        } else {
            self.said("PUT", key, body);
        }
    }

    /// Something that places the job anew, if it is done at all.
    fn change(&mut self, key: &str, method: &str, path: &str, body: &str) {
        let from = now();
        if let Some(job) = self.said(method, path, body) {
            self.book.changed(key, (from, now() + 1), &job);
        }
    }

    /// What a node answers; none if it says that this cannot be done now.
    fn said(&mut self, method: &str, path: &str, body: &str) -> Option<Json> {
        let (status, answer) = self.node.ask(method, &format!("/api/v1/jobs/{path}"), body);
        assert!(matches!(status, 200..=204 | 404 | 409), "{method} {path}: {status} {answer}");
        self.n_done += u64::from(status < 300);
        (status < 300).then_some(answer)
    }
}
