//! What the store does not do at the moment, told once when it begins and once when it is over.
//!
//! Each kind of question has its own trouble: a node whose beats are answered may yet hear nothing of the others, and
//! then nobody's runs are taken over, however long their node has been gone.

use std::collections::BTreeSet;

use evenbeat_core::engine::Event;
use evenbeat_core::store::StoreDown;

/// What a store is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// To keep something.
    Write,
    /// To tell who lives.
    Watch,
    /// To let nothing more be written by a node that is silent.
    Fence,
    /// To tell what has changed.
    Changes,
}

/// What a store did not do when it was last asked.
#[derive(Debug, Default)]
pub(super) struct Troubles(BTreeSet<Asked>);

/// What people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn<'a> {
    /// It was not done, for the first time in a while.
    Fails(Asked, &'a StoreDown),
    /// It was done again.
    Recovers(Asked),
}

impl Troubles {
    /// Looks at an event: something is told if it is an answer, and another than the last to such a question.
    pub(super) fn hear<'a>(&mut self, event: &'a Event) -> Option<Turn<'a>> {
        let (asked, answer) = answer(event)?;
        match answer {
            Err(down) => self.0.insert(asked).then_some(Turn::Fails(asked, down)),
            Ok(()) => self.0.remove(&asked).then_some(Turn::Recovers(asked)),
        }
    }
}

/// What was asked, and whether it was done; none if the event is no answer.
fn answer(event: &Event) -> Option<(Asked, Result<(), &StoreDown>)> {
    fn done<T>(answer: &Result<T, StoreDown>) -> Result<(), &StoreDown> {
        answer.as_ref().map(drop)
    }
    match event {
        Event::Beaten { answer, .. } => Some((Asked::Write, done(answer))),
        Event::Claimed { answer, .. } => Some((Asked::Write, done(answer))),
        Event::Settled { answer, .. } => Some((Asked::Write, done(answer))),
        Event::EndAnswered { answer, .. } => Some((Asked::Write, done(answer))),
        Event::Watched(answer) => Some((Asked::Watch, done(answer))),
        Event::Fenced { answer, .. } => Some((Asked::Fence, done(answer))),
        Event::Changed(answer) => Some((Asked::Changes, done(answer))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::BootTime;

    use super::*;

    /// A store answers a question, or does not.
    type Answer = fn(bool) -> Event;

    fn down<T>() -> Result<T, StoreDown> {
        Err(StoreDown("no route".to_owned()))
    }

    #[test]
    fn each_kind_of_question_is_told_of_once_when_it_fails_and_once_when_it_is_answered() {
        let answers: [(Asked, Answer); 7] = [
            (Asked::Write, |is_up| {
                let answer = if is_up { Ok(evenbeat_core::store::Beat::Dead) } else { down() };
                Event::Beaten { began_at: BootTime::from_millis(0), answer }
            }),
            (Asked::Write, |is_up| {
                let claims = evenbeat_core::store::Claims::Answered(Vec::new());
                Event::Claimed { claims: Vec::new(), answer: if is_up { Ok(claims) } else { down() } }
            }),
            (Asked::Write, |is_up| Event::Settled {
                keys: Vec::new(),
                answer: if is_up { Ok(Vec::new()) } else { down() },
            }),
            (Asked::Write, |is_up| Event::EndAnswered {
                runs: Vec::new(),
                answer: if is_up { Ok(Vec::new()) } else { down() },
            }),
            (Asked::Watch, |is_up| Event::Watched(if is_up { Ok(nobody()) } else { down() })),
            (Asked::Fence, |is_up| Event::Fenced {
                silent: Vec::new(),
                answer: if is_up { Ok(Vec::new()) } else { down() },
            }),
            (Asked::Changes, |is_up| {
                Event::Changed(if is_up { Ok(evenbeat_core::store::Changes::Reset) } else { down() })
            }),
        ];
        for (asked, event) in answers {
            let mut troubles = Troubles::default();
            let told: Vec<bool> = [true, false, false, true, true]
                .map(|is_up| match troubles.hear(&event(is_up)) {
                    Some(Turn::Fails(it, StoreDown(why))) => {
                        assert_eq!((it, why.as_str(), is_up), (asked, "no route", false));
                        true
                    }
                    Some(Turn::Recovers(it)) => {
                        assert_eq!((it, is_up), (asked, true));
                        true
                    }
                    None => false,
                })
                .to_vec();
            assert_eq!(told, [false, true, false, true, false], "{asked:?}");
        }
    }

    #[test]
    fn a_store_that_takes_beats_is_still_said_not_to_tell_who_lives() {
        let mut troubles = Troubles::default();
        let beaten = Event::Beaten {
            began_at: BootTime::from_millis(0),
            answer: Ok(evenbeat_core::store::Beat::Dead),
        };
        assert!(matches!(troubles.hear(&Event::Watched(down())), Some(Turn::Fails(Asked::Watch, _))));
        assert_eq!(troubles.hear(&beaten), None);
        assert_eq!(troubles.hear(&Event::Woke), None);
        assert_eq!(troubles.hear(&Event::Watched(Ok(nobody()))), Some(Turn::Recovers(Asked::Watch)));
    }

    fn nobody() -> evenbeat_core::store::Watch {
        evenbeat_core::store::Watch {
            epoch: evenbeat_core::lease::Epoch(1),
            is_open: true,
            now: evenbeat_core::time::Timestamp::from_millis(0),
            sessions: Vec::new(),
            orphans: Vec::new(),
        }
    }
}
