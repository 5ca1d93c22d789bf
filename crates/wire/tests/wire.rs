//! The numbers that the bindings pass are a protocol: the engines of two versions in one page share it.

use tidegate_core::{Config, Field, InputError, Kind, Policy, Reason, State};
use tidegate_table::{Limit, Op, Table};
use tidegate_wire::{self as wire, NUMBERS};

#[test]
fn each_status_and_flag_is_its_own_bit() {
    let statuses = [
        wire::OK,
        wire::RESERVED,
        wire::WRITES,
        wire::UNDECIDED,
        wire::INPUT_ERROR,
        wire::BROKEN,
        wire::KEY_TOO_LONG,
        wire::FAILED,
    ];
    assert_eq!(statuses, [1, 2, 4, 32, 256, 512, 1024, 2048]);
    assert_eq!([wire::OP, wire::RESERVE, wire::WITHOUT_KEY, wire::RESET], [7, 8, 16, 32]);
    assert_eq!(wire::REASON_SHIFT, 3);
    assert_eq!([wire::NO_KEY, wire::SAME_KEY, wire::NONE], [0xffff_ffff, 0xffff_fffe, 0xffff_ffff]);
}

#[test]
fn a_call_is_read_from_its_flags_or_refused_with_its_field() {
    for (flags, op) in [(0, Op::Take), (1, Op::Check), (2, Op::Give), (3, Op::Charge), (4, Op::Block)] {
        let call = wire::call(1000.0, 2.0, flags).unwrap();
        assert_eq!((call.op, call.now, call.count, call.reserve), (op, 1000.0, 2.0, false));
        assert!(wire::call(1000.0, 2.0, flags | wire::RESERVE).unwrap().reserve);
    }
    let refused = |field: Field| Err(wire::INPUT_ERROR + field as u32);
    assert_eq!(wire::call(1000.0, -1.0, 0).map(drop), refused(Field::Count));
    assert_eq!(wire::call(1000.0, 0.5, 4).map(drop), refused(Field::For), "a block's count is a duration");
    assert_eq!(wire::call(f64::NAN, 1.0, 0).map(drop), refused(Field::Now));
    assert_eq!(wire::refuse(InputError { field: Field::Ts, value: f64::NAN }), wire::INPUT_ERROR + Field::Ts as u32);
}

#[test]
fn a_decision_is_its_status_and_numbers() {
    let policy = wire::policy(0, &[2.0, 1000.0, f64::NAN, 1.0, f64::NAN, f64::NAN, 0.0, 0.0]).unwrap();
    let limit = Limit::new([1, 2], "one", policy);
    let mut table = Table::new(10, [1, 2]);
    let mut numbers = [0.0; NUMBERS];
    let mut take = |count: f64, flags: u32| {
        let call = wire::call(5000.0, count, flags).unwrap();
        let status = wire::write_decision(&table.decide(&limit, Some(b"a"), call), &mut numbers);
        (status, numbers)
    };
    let bits = |(status, numbers): (u32, [f64; NUMBERS])| (status, numbers.map(f64::to_bits));
    let expected = |status: u32, [value, remaining, retry_at, reset_at]: [f64; 4]| {
        bits((status, [value, 5000.0, remaining, retry_at, reset_at, 0.0, 0.0, 0.0]))
    };
    let none = f64::NAN;
    assert_eq!(bits(take(1.0, 0)), expected(1, [1.0, 1.0, none, 5500.0]));
    assert_eq!(bits(take(2.0, 0)), expected(0, [1.0, 1.0, 5500.0, 5500.0]));
    assert_eq!(bits(take(2.0, wire::RESERVE)), expected(3, [-1.0, 0.0, 5500.0, 6500.0]));
    // Decided before any state is read.
    assert_eq!(bits(take(3.5, 0)), expected((Reason::ExceedsCapacity as u32) << 3, [0.0, 0.0, none, 5000.0]));
}

#[test]
fn a_state_to_write_is_the_sixth_and_seventh_number() {
    let mut numbers = [0.0; NUMBERS];
    assert_eq!(wire::write_state(None, &mut numbers), 0);
    assert_eq!(numbers, [0.0; NUMBERS]);
    assert_eq!(wire::write_state(State::new(-1.5, 7.0).ok(), &mut numbers), 4);
    assert_eq!(numbers, [0.0, 0.0, 0.0, 0.0, 0.0, -1.5, 7.0, 0.0]);
}

#[test]
fn a_number_of_a_policy_that_is_nan_is_absent() {
    let given = [5.0, 1000.0, 3.0, f64::NAN, 10.0, f64::NAN, 0.0, 0.0];
    let window =
        Config { rate: 5.0, period: 1000.0, capacity: Some(3.0), start: Some(10.0), ..Config::new(Kind::FixedWindow) };
    assert_eq!(wire::policy(1, &given), Policy::new(&window).map_err(wire::refuse));
    let bucket = Config { rate: 5.0, period: 1000.0, max_reserved: Some(2.0), ..Config::new(Kind::TokenBucket) };
    let given = [5.0, 1000.0, f64::NAN, 2.0, f64::NAN, f64::NAN, 0.0, 0.0];
    assert_eq!(wire::policy(0, &given), Policy::new(&bucket).map_err(wire::refuse));
}
