//! A search over integers.

/// The least integer from 0 to `most` for which the monotone predicate holds; `None` if it does not hold at `most`.
/// Starts at `guess` and gallops, so a good guess costs two evaluations. The last integer that held is the one returned.
pub(crate) fn least_near<E>(
    guess: f64,
    most: f64,
    mut holds: impl FnMut(f64) -> Result<bool, E>,
) -> Result<Option<f64>, E> {
    let (mut no, mut yes);
    let mut step = 1.0;
    if holds(guess)? {
        yes = guess;
        loop {
            if yes <= 0.0 {
                return Ok(Some(0.0));
            }
            let below = f64::max(yes - step, 0.0);
            if !holds(below)? {
                no = below;
                break;
            }
            yes = below;
            step *= 2.0;
        }
    } else {
        no = guess;
        loop {
            if no >= most {
                return Ok(None);
            }
            let above = f64::min(no + step, most);
            if holds(above)? {
                yes = above;
                break;
            }
            no = above;
            step *= 2.0;
        }
    }
    while yes - no > 1.0 {
        let middle = no + ((yes - no) / 2.0).floor();
        *(if holds(middle)? { &mut yes } else { &mut no }) = middle;
    }
    Ok(Some(yes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_good_guess_costs_two_calls_and_a_distant_one_few() {
        for (guess, least, most) in [(500.0, 500.0, 2), (0.0, 1.0, 2), (0.0, 700.0, 21), (1000.0, 300.0, 21)] {
            let mut calls = 0;
            let holds = |n| {
                calls += 1;
                Ok::<_, ()>(n >= least)
            };
            assert_eq!(least_near(guess, 1000.0, holds), Ok(Some(least)));
            assert!(calls <= most, "{calls} calls from {guess} to {least}");
        }
    }

    proptest! {
        #[test]
        fn the_least_is_found_from_any_guess(least in 0u32..2000, guess in 0u32..1000) {
            let mut last = None;
            let found = least_near::<()>(f64::from(guess), 1000.0, |n| {
                let holds = n >= f64::from(least);
                last = if holds { Some(n) } else { last };
                Ok(holds)
            });
            let expected = (least <= 1000).then_some(f64::from(least));
            prop_assert_eq!((found, last), (Ok(expected), expected));
        }
    }
}
