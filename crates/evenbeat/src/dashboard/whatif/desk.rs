//! Answers questions one at a time, for as long as a page waits for the answer. Answers are kept for a minute.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};

use crate::views::whatif::{SimulationStop, WhatIfAnswer};

/// How long an answer is good for: the fleet changes.
const KEPT_FOR: Duration = Duration::from_mins(1);
/// How long a page waits for an answer before it says that it takes longer.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// A question is given up if no page asks for it for this long. Pages ask every two seconds.
const INTEREST: Duration = Duration::from_secs(12);
/// How long one answer may take.
const LONGEST: Duration = Duration::from_mins(1);
/// Questions that can wait for an answer at the same time.
const PENDING_MAX: usize = 8;
/// Answers that are kept.
const ANSWERS_MAX: usize = 64;

/// An answer, or the reason why there is none.
pub(super) type DeskAnswer = Result<WhatIfAnswer, NoDeskAnswer>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoDeskAnswer {
    /// The question has none; a sentence.
    NotAnswerable(String),
    /// The fleet is too large for a page.
    TooLarge,
    /// It took too long.
    TooLong,
    /// Something is not available; a sentence.
    Unavailable(String),
}

/// How far a question is.
#[derive(Clone, Debug)]
pub(super) enum DeskProgress {
    /// Others are answered first.
    Waiting,
    /// Number of simulations done.
    Running(usize),
    Done(Arc<DeskAnswer>),
    /// Too many others wait.
    Full,
}

/// All questions. Copies share them.
#[derive(Clone, Debug)]
pub(in crate::dashboard) struct WhatIfDesk {
    inner: Arc<DeskState>,
}

#[derive(Debug)]
struct DeskState {
    questions: Mutex<BTreeMap<String, DeskEntry>>,
    turn: Semaphore,
}

#[derive(Debug)]
struct DeskEntry {
    progress: watch::Receiver<DeskProgress>,
    interest: Arc<Interest>,
    /// When there was an answer.
    done_at: Option<Instant>,
}

/// Whether a page still waits for an answer.
#[derive(Debug)]
pub(super) struct Interest {
    asked_at: Mutex<Instant>,
    is_cancelled: AtomicBool,
    /// When the first simulation began.
    began_at: OnceLock<Instant>,
    progress: watch::Sender<DeskProgress>,
}

impl Interest {
    /// Whether to go on. Shows how far it is.
    pub(super) fn check(&self, n_simulations: usize) -> Result<(), SimulationStop> {
        self.progress.send_replace(DeskProgress::Running(n_simulations));
        if self.is_lost() {
            return Err(SimulationStop::Cancelled);
        }
        if LONGEST < self.began_at.get_or_init(Instant::now).elapsed() {
            Err(SimulationStop::TooLong)
        } else {
            Ok(())
        }
    }

    fn is_lost(&self) -> bool {
        let asked_at = *self.asked_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_cancelled.load(Ordering::Relaxed) || INTEREST < asked_at.elapsed()
    }

    fn touch(&self) {
        *self.asked_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl Default for WhatIfDesk {
    fn default() -> WhatIfDesk {
        let inner = DeskState { questions: Mutex::default(), turn: Semaphore::new(1) };
        WhatIfDesk { inner: Arc::new(inner) }
    }
}

impl WhatIfDesk {
    /// The answer, if it is there within `patience`. Work that stops because no page waits has no answer.
    pub(super) async fn ask<W>(
        &self,
        question: &str,
        patience: Duration,
        work: impl FnOnce(Arc<Interest>) -> W,
    ) -> DeskProgress
    where
        W: Future<Output = Option<DeskAnswer>> + Send + 'static,
    {
        let Some(mut progress) = self.begin(question, work) else { return DeskProgress::Full };
        let done = progress.wait_for(|it| matches!(it, DeskProgress::Done(_)));
        // The sender goes only after the answer, or if no page waits for it.
        let _ = tokio::time::timeout(patience, done).await;
        progress.borrow().clone()
    }

    /// Gives a question up.
    pub(super) fn cancel(&self, question: &str) {
        if let Some(entry) = self.questions().remove(question) {
            entry.interest.is_cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn begin<W>(
        &self,
        question: &str,
        work: impl FnOnce(Arc<Interest>) -> W,
    ) -> Option<watch::Receiver<DeskProgress>>
    where
        W: Future<Output = Option<DeskAnswer>> + Send + 'static,
    {
        let mut questions = self.questions();
        questions.retain(|_, it| it.done_at.is_none_or(|at| at.elapsed() < KEPT_FOR));
        if let Some(entry) =
            questions.get(question).filter(|it| !it.interest.is_lost() || it.done_at.is_some())
        {
            entry.interest.touch();
            return Some(entry.progress.clone());
        }
        if PENDING_MAX <= questions.values().filter(|it| it.done_at.is_none()).count() {
            return None;
        }
        if ANSWERS_MAX <= questions.len() {
            questions.retain(|_, it| it.done_at.is_none());
        }
        let (progress, seen) = watch::channel(DeskProgress::Waiting);
        let interest = Arc::new(Interest {
            asked_at: Mutex::new(Instant::now()),
            is_cancelled: AtomicBool::new(false),
            began_at: OnceLock::new(),
            progress,
        });
        let entry = DeskEntry { progress: seen.clone(), interest: Arc::clone(&interest), done_at: None };
        questions.insert(question.to_owned(), entry);
        drop(questions);
        let (desk, question, work) = (self.clone(), question.to_owned(), work(Arc::clone(&interest)));
        tokio::spawn(async move {
            let turn = desk.inner.turn.acquire().await;
            let answer = if interest.is_lost() { None } else { work.await };
            drop(turn);
            desk.end(&question, &interest, answer);
        });
        Some(seen)
    }

    fn end(&self, question: &str, interest: &Arc<Interest>, answer: Option<DeskAnswer>) {
        let mut questions = self.questions();
        // It may have been cancelled and asked again.
        let entry = questions.get_mut(question).filter(|it| Arc::ptr_eq(&it.interest, interest));
        match (entry, answer) {
            (Some(entry), Some(answer)) => {
                entry.done_at = Some(Instant::now());
                interest.progress.send_replace(DeskProgress::Done(Arc::new(answer)));
            }
            (Some(_), None) => drop(questions.remove(question)),
            (None, _) => {}
        }
    }

    fn questions(&self) -> MutexGuard<'_, BTreeMap<String, DeskEntry>> {
        self.inner.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::oneshot;

    use super::*;

    fn too_large() -> DeskAnswer {
        Err(NoDeskAnswer::TooLarge)
    }

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn an_answer_is_worked_out_once_and_kept() {
        let (desk, n_works) = (WhatIfDesk::default(), Arc::new(AtomicUsize::new(0)));
        for _ in 0..3 {
            let n_works = Arc::clone(&n_works);
            let work = |_| async move {
                n_works.fetch_add(1, Ordering::Relaxed);
                Some(too_large())
            };
            let found = desk.ask("a", Duration::from_secs(30), work).await;
            assert!(matches!(found, DeskProgress::Done(_)), "{found:?}");
        }
        assert_eq!(n_works.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_slow_answer_comes_later_and_others_wait_for_their_turn() {
        let desk = WhatIfDesk::default();
        let (finish, finished) = oneshot::channel::<()>();
        let slow = |interest: Arc<Interest>| async move {
            interest.check(3).unwrap();
            let _ = finished.await;
            Some(too_large())
        };
        let found = desk.ask("slow", SHORT, slow).await;
        assert!(matches!(found, DeskProgress::Running(3)), "{found:?}");
        let found = desk.ask("next", SHORT, |_| async { Some(too_large()) }).await;
        assert!(matches!(found, DeskProgress::Waiting), "{found:?}");
        finish.send(()).unwrap();
        for question in ["slow", "next"] {
            let found = desk.ask(question, Duration::from_secs(30), |_| async { None }).await;
            assert!(matches!(found, DeskProgress::Done(_)), "{question}: {found:?}");
        }
    }

    #[tokio::test]
    async fn who_cancels_stops_the_work_and_may_ask_again() {
        let desk = WhatIfDesk::default();
        let (seen, stopped) = oneshot::channel();
        let (go_on, may_go_on) = oneshot::channel::<()>();
        let work = |interest: Arc<Interest>| async move {
            let _ = may_go_on.await;
            let _ = seen.send(interest.check(1));
            None
        };
        assert!(matches!(desk.ask("a", SHORT, work).await, DeskProgress::Waiting));
        desk.cancel("a");
        go_on.send(()).unwrap();
        assert_eq!(stopped.await.unwrap(), Err(SimulationStop::Cancelled));
        let again = desk.ask("a", Duration::from_secs(30), |_| async { Some(too_large()) }).await;
        assert!(matches!(again, DeskProgress::Done(_)), "{again:?}");
    }

    #[tokio::test]
    async fn too_many_questions_are_turned_away() {
        let desk = WhatIfDesk::default();
        for n in 0..PENDING_MAX {
            let found = desk.ask(&n.to_string(), SHORT, |_| std::future::pending()).await;
            assert!(matches!(found, DeskProgress::Waiting), "{found:?}");
        }
        assert!(matches!(desk.ask("more", SHORT, |_| async { Some(too_large()) }).await, DeskProgress::Full));
    }
}
