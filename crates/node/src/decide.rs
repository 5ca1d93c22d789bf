//! `decide`, the hot call, written directly on Node-API.

use crate::key::append;
use crate::thread::{Kept, with_limit};
use napi::sys;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use tidegate_core::MAX_KEY_BYTES;
use tidegate_wire::{BROKEN, KEY_TOO_LONG, RESET, WITHOUT_KEY, call, write_decision};

/// `decide(limit, flags, key)`: one call on one limit and key, with now and count in the first two numbers of
/// the limit's store. Returns the status word of [`tidegate_wire`]; the decision is in the same numbers.
pub(crate) extern "C" fn decide(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    returning(env, || answer(&Arguments::of(env, info)?))
}

#[inline(always)]
fn returning(env: sys::napi_env, status: impl FnOnce() -> Option<u32>) -> sys::napi_value {
    let status = catch_unwind(AssertUnwindSafe(status)).ok().flatten().unwrap_or(BROKEN);
    let mut result = ptr::null_mut();
    // Safety: `env` is the one this was called with.
    unsafe { sys::napi_create_uint32(env, status, &mut result) };
    result
}

/// UTF-16 units of a key that the first read takes; a longer key is read again.
const SHORT: usize = 64;

struct Arguments {
    env: sys::napi_env,
    values: [sys::napi_value; 3],
}

impl Arguments {
    fn of(env: sys::napi_env, info: sys::napi_callback_info) -> Option<Arguments> {
        let mut values = [ptr::null_mut(); 3];
        let mut count = values.len();
        // Safety: `env` and `info` are the ones of this call, and there is room for three values. A missing
        // one is undefined, and reading that as a number or a string fails without effect.
        let status = unsafe {
            sys::napi_get_cb_info(env, info, &mut count, values.as_mut_ptr(), ptr::null_mut(), ptr::null_mut())
        };
        (status == sys::Status::napi_ok).then_some(Arguments { env, values })
    }

    fn number(&self, at: usize) -> Option<u32> {
        let mut number = 0;
        // Safety: a value of this call.
        let status = unsafe { sys::napi_get_value_uint32(self.env, self.values[at], &mut number) };
        (status == sys::Status::napi_ok).then_some(number)
    }

    /// The first units of the string, as many as fit but two.
    #[inline]
    fn units<'a>(&self, at: usize, room: &'a mut [u16]) -> Option<&'a [u16]> {
        let mut length = 0;
        // Safety: a value of this call, and the room's own length.
        let status = unsafe {
            sys::napi_get_value_string_utf16(self.env, self.values[at], room.as_mut_ptr(), room.len(), &mut length)
        };
        if status == sys::Status::napi_ok { room.get(..length) } else { None }
    }
}

#[inline(always)]
fn answer(arguments: &Arguments) -> Option<u32> {
    let (limit, flags) = (arguments.number(0)?, arguments.number(1)?);
    if flags & WITHOUT_KEY != 0 {
        return Some(with_key(limit, flags, None));
    }
    let mut room = [0; SHORT + 2];
    let units = arguments.units(2, &mut room)?;
    if units.len() > SHORT {
        return long(arguments, limit, flags);
    }
    let mut bytes = [0; SHORT];
    let mut seen = 0;
    for (byte, unit) in bytes.iter_mut().zip(units) {
        seen |= unit;
        *byte = *unit as u8;
    }
    if seen < 128 { Some(with_key(limit, flags, bytes.get(..units.len()))) } else { long(arguments, limit, flags) }
}

/// As above, for a key that is long or not ASCII.
#[cold]
fn long(arguments: &Arguments, limit: u32, flags: u32) -> Option<u32> {
    let mut room = [0; MAX_KEY_BYTES + 2];
    let units = arguments.units(2, &mut room)?;
    let mut key = Vec::with_capacity(units.len());
    let status = append(units, &mut key).map(|()| with_key(limit, flags, Some(&key)));
    Some(status.unwrap_or(KEY_TOO_LONG))
}

#[inline]
fn with_key(limit: u32, flags: u32, key: Option<&[u8]>) -> u32 {
    let decided = with_limit(limit, |Kept { limit, store }| {
        if flags & RESET != 0 {
            return store.reset(limit, key).map(|()| 0);
        }
        store.with_numbers(|numbers| {
            let decision = store.decide(limit, key, call(numbers[0], numbers[1], flags)?)?;
            Ok(write_decision(&decision, numbers))
        })
    });
    decided.map_or(BROKEN, |decided: Result<u32, u32>| decided.unwrap_or_else(|status| status))
}
