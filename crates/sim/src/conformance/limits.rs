//! Limits that span nodes: counted inside the claim.

use evenbeat_core::run::Outcome;
use evenbeat_core::store::{Bid, ClaimAnswer, CounterKey, CounterLimit, EndBy, Store, Take, Views};
use evenbeat_core::time::Timestamp;

use super::Backend;
use super::fixture::Fixture;
use super::sample::{HOUR, at_most, node, site};

fn full(name: &str) -> ClaimAnswer {
    ClaimAnswer::Limited { by: site(name), until: None }
}

#[track_caller]
fn limited_until(answer: &ClaimAnswer) -> Timestamp {
    match answer {
        ClaimAnswer::Limited { by, until: Some(until) } if *by == site("shop") => *until,
        other => panic!("not a matter of time: {other:?}"),
    }
}

pub(super) fn a_counter_holds_across_jobs<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    fixture.open_taking("a", &[at_most(2, "shop")]);
    let row = fixture.create("b");
    let bid = Bid { takes: vec![at_most(2, "shop")], ..fixture.bid(&row) };
    fixture.claim_as(other, bid);
    assert_eq!(fixture.ask_taking("c", &[at_most(2, "shop")]), full("shop"));
    fixture.open_taking("d", &[at_most(2, "inn")]);
}

pub(super) fn every_end_makes_room<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let only_one = [at_most(1, "shop")];
    let other = fixture.join(&node(2, "n2"));
    let by_owner = fixture.open_taking("a", &only_one);
    fixture.succeed(&by_owner);
    let taken_back = fixture.open_taking("b", &only_one);
    fixture.end(&taken_back, EndBy::Unstarted);
    let row = fixture.create("c");
    let bid = Bid { takes: only_one.to_vec(), ..fixture.bid(&row) };
    let lost = fixture.claim_as(other, bid);
    fixture.kill(other);
    assert_eq!(fixture.ask_taking("d", &only_one), full("shop"), "the dead hold what they hold");
    fixture.end(&lost, fixture.release(other));
    fixture.open_taking("e", &only_one);
}

pub(super) fn a_gap_is_kept_from_claim_to_claim<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let limit = CounterLimit { min_gap: Some(HOUR), ..CounterLimit::default() };
    let spaced = [Take { counter: site("shop"), limit }];
    let first = fixture.open_taking("a", &spaced);
    fixture.end(&first, fixture.owned(Outcome::Succeeded));
    let answer = fixture.ask_taking("b", &spaced);
    assert_eq!(limited_until(&answer), first.claimed_at + HOUR);
}

pub(super) fn an_hour_has_so_many_claims<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let limit = CounterLimit { max_per_hour: Some(2), ..CounterLimit::default() };
    let hourly = [Take { counter: site("shop"), limit }];
    let first = fixture.open_taking("a", &hourly);
    fixture.succeed(&first);
    let second = fixture.open_taking("b", &hourly);
    fixture.succeed(&second);
    let answer = fixture.ask_taking("c", &hourly);
    assert_eq!(limited_until(&answer), first.claimed_at + HOUR, "when the oldest is an hour old");
}

pub(super) fn a_limit_of_none_at_all_is_not_a_matter_of_time<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let never = CounterLimit { max_per_hour: Some(0), ..CounterLimit::default() };
    assert_eq!(fixture.ask_taking("a", &[at_most(0, "shop")]), full("shop"));
    assert_eq!(fixture.ask_taking("b", &[Take { counter: site("shop"), limit: never }]), full("shop"));
}

pub(super) fn all_counters_of_a_claim_must_have_room<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.open_taking("a", &[at_most(1, "shop")]);
    let both = [at_most(1, "inn"), at_most(1, "shop")];
    assert_eq!(fixture.ask_taking("b", &both), full("shop"));
    fixture.open_taking("c", &[at_most(1, "inn")]);
}

pub(super) fn counters_of_different_kinds_are_apart<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let limit = CounterLimit { max_open: Some(1), ..CounterLimit::default() };
    let kinds = [
        CounterKey::Name("shop".into()),
        CounterKey::Site("shop".parse().unwrap()),
        CounterKey::Tenant("shop".parse().unwrap()),
    ];
    for (name, counter) in ["a", "b", "c"].into_iter().zip(kinds.clone()) {
        fixture.open_taking(name, &[Take { counter, limit }]);
    }
    for (name, counter) in ["d", "e", "f"].into_iter().zip(kinds) {
        let by = counter.clone();
        let answer = fixture.ask_taking(name, &[Take { counter, limit }]);
        assert_eq!(answer, ClaimAnswer::Limited { by, until: None });
    }
}

pub(super) fn a_batch_fills_a_counter_as_it_goes<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let bids = ["a", "b", "c"].map(|name| {
        let row = fixture.create(name);
        Bid { takes: vec![at_most(2, "shop")], ..fixture.bid(&row) }
    });
    let answers = fixture.ask_claims(bids.to_vec());
    assert!(answers[..2].iter().all(|it| matches!(it, ClaimAnswer::Granted(_))), "{answers:?}");
    assert_eq!(answers[2], full("shop"));
}

pub(super) fn the_limit_is_the_claims_own<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.open_taking("a", &[at_most(1, "shop")]);
    fixture.open_taking("b", &[at_most(2, "shop")]);
    let unlimited = Take { counter: site("shop"), limit: CounterLimit::default() };
    fixture.open_taking("c", &[unlimited]);
    assert_eq!(fixture.store.counters().unwrap()[0].n_open, 3, "counted also where nothing limits it");
}

pub(super) fn counters_show_what_is_open<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    assert_eq!(fixture.store.counters().unwrap(), []);
    let first = fixture.open_taking("a", &[at_most(2, "shop")]);
    let second = fixture.open_taking("b", &[at_most(2, "shop"), at_most(2, "inn")]);
    fixture.succeed(&first);
    let mut counters = fixture.store.counters().unwrap();
    counters.sort_by(|one, other| one.counter.cmp(&other.counter));
    let shown: Vec<_> = counters.into_iter().map(|it| (it.counter, it.n_open, it.last_claim_at)).collect();
    let at = Some(second.claimed_at);
    assert_eq!(shown, [(site("inn"), 1, at), (site("shop"), 1, at)]);
}

pub(super) fn a_right_count_stays_as_it_is<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let first = fixture.open_taking("a", &[at_most(2, "shop")]);
    fixture.open_taking("b", &[at_most(2, "shop")]);
    fixture.succeed(&first);
    let before = fixture.store.counters().unwrap();
    assert_eq!(fixture.store.recount().unwrap(), []);
    assert_eq!(fixture.store.counters().unwrap(), before);
}
