//! What the store does not do at the moment, told once when it begins to fail and once when it recovers.
//!
//! Each duty fails by itself: a node whose beats are answered may still hear nothing of the others, and then no run is
//! taken over, however long its node has been gone.

use std::collections::BTreeSet;

use evenbeat_core::engine::Event;
use evenbeat_core::notice::{Notice, StoreDuty};
use evenbeat_core::store::StoreDown;

/// The duties that the store failed when they were last tried.
#[derive(Debug, Default)]
pub(super) struct Troubles(BTreeSet<StoreDuty>);

impl Troubles {
    /// Looks at an event: there is something to tell if it is an answer, and unlike the last one for that duty.
    pub(super) fn hear(&mut self, event: &Event) -> Option<Notice> {
        let (duty, answer) = answer(event)?;
        match answer {
            Err(StoreDown(why)) => {
                self.0.insert(duty).then(|| Notice::StoreFailing { duty, why: why.clone() })
            }
            Ok(()) => self.0.remove(&duty).then_some(Notice::StoreRecovered { duty }),
        }
    }
}

/// Which duty an event answers, and whether it was done; none if the event is not an answer.
pub(super) fn answer(event: &Event) -> Option<(StoreDuty, Result<(), &StoreDown>)> {
    fn done<T>(answer: &Result<T, StoreDown>) -> Result<(), &StoreDown> {
        answer.as_ref().map(drop)
    }
    match event {
        Event::Beaten { answer, .. } => Some((StoreDuty::Write, done(answer))),
        Event::Claimed { answer, .. } => Some((StoreDuty::Write, done(answer))),
        Event::Settled { answer, .. } => Some((StoreDuty::Write, done(answer))),
        Event::EndAnswered { answer, .. } => Some((StoreDuty::Write, done(answer))),
        Event::Watched(answer) => Some((StoreDuty::Watch, done(answer))),
        Event::Fenced { answer, .. } => Some((StoreDuty::Fence, done(answer))),
        Event::Changed(answer) => Some((StoreDuty::Changes, done(answer))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::BootTime;

    use super::*;

    /// A store does a duty, or does not.
    type Answer = fn(bool) -> Event;

    fn down<T>() -> Result<T, StoreDown> {
        Err(StoreDown("no route".to_owned()))
    }

    #[test]
    fn each_duty_is_told_of_once_when_it_fails_and_once_when_it_recovers() {
        let answers: [(StoreDuty, Answer); 7] = [
            (StoreDuty::Write, |is_up| {
                let answer = if is_up { Ok(evenbeat_core::store::Beat::Dead) } else { down() };
                Event::Beaten { began_at: BootTime::from_millis(0), answer }
            }),
            (StoreDuty::Write, |is_up| {
                let claims = evenbeat_core::store::Claims::Answered(Vec::new());
                Event::Claimed { claims: Vec::new(), answer: if is_up { Ok(claims) } else { down() } }
            }),
            (StoreDuty::Write, |is_up| Event::Settled {
                keys: Vec::new(),
                answer: if is_up { Ok(Vec::new()) } else { down() },
            }),
            (StoreDuty::Write, |is_up| Event::EndAnswered {
                runs: Vec::new(),
                answer: if is_up { Ok(Vec::new()) } else { down() },
            }),
            (StoreDuty::Watch, |is_up| Event::Watched(if is_up { Ok(nobody()) } else { down() })),
            (StoreDuty::Fence, |is_up| Event::Fenced {
                silent: Vec::new(),
                answer: if is_up { Ok(Vec::new()) } else { down() },
            }),
            (StoreDuty::Changes, |is_up| {
                Event::Changed(if is_up { Ok(evenbeat_core::store::Changes::Reset) } else { down() })
            }),
        ];
        for (duty, event) in answers {
            let mut troubles = Troubles::default();
            let told: Vec<bool> = [true, false, false, true, true]
                .map(|is_up| match troubles.hear(&event(is_up)) {
                    Some(Notice::StoreFailing { duty: it, why }) => {
                        assert_eq!((it, why.as_str(), is_up), (duty, "no route", false));
                        true
                    }
                    Some(Notice::StoreRecovered { duty: it }) => {
                        assert_eq!((it, is_up), (duty, true));
                        true
                    }
                    Some(other) => panic!("{other:?}"),
                    None => false,
                })
                .to_vec();
            assert_eq!(told, [false, true, false, true, false], "{duty:?}");
        }
    }

    #[test]
    fn a_store_that_takes_beats_is_still_said_not_to_tell_who_lives() {
        let mut troubles = Troubles::default();
        let beaten = Event::Beaten {
            began_at: BootTime::from_millis(0),
            answer: Ok(evenbeat_core::store::Beat::Dead),
        };
        let failing = Notice::StoreFailing { duty: StoreDuty::Watch, why: "no route".to_owned() };
        assert_eq!(troubles.hear(&Event::Watched(down())), Some(failing));
        assert_eq!(troubles.hear(&beaten), None);
        assert_eq!(troubles.hear(&Event::Woke), None);
        assert_eq!(
            troubles.hear(&Event::Watched(Ok(nobody()))),
            Some(Notice::StoreRecovered { duty: StoreDuty::Watch })
        );
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
