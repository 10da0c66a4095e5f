//! A task's wait for a condition. Abandoned, it leaves no waker behind.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use farhaul_proto::{Channels, Streams};
use farhaul_units::Instant;

use super::core::{Core, WaitPlace};
use super::guard::{CancelFlags, Shared};
use super::wakers::Registration;
use crate::error::Error;

/// [`Shared::wait_for`] for tasks: repeats an attempt whenever its place is woken, until it gives a result.
pub(crate) struct TaskWait<'a, T: Streams + Channels, R, A> {
    shared: &'a Shared<T>,
    place: WaitPlace,
    flags: CancelFlags<'a>,
    registration: Registration,
    attempt: A,
    gives: PhantomData<fn() -> R>,
}

impl<'a, T: Streams + Channels, R, A> TaskWait<'a, T, R, A>
where
    A: FnMut(&mut Core<T>, Instant) -> Result<Option<R>, Error>,
{
    pub(crate) fn new(shared: &'a Shared<T>, place: WaitPlace, flags: CancelFlags<'a>, attempt: A) -> Self {
        Self { shared, place, flags, registration: Registration::default(), attempt, gives: PhantomData }
    }
}

/// It pins nothing.
impl<T: Streams + Channels, R, A> Unpin for TaskWait<'_, T, R, A> {}

impl<T: Streams + Channels, R, A> Future for TaskWait<'_, T, R, A>
where
    A: FnMut(&mut Core<T>, Instant) -> Result<Option<R>, Error>,
{
    type Output = Result<R, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, place, flags, registration, attempt, .. } = &mut *self;
        shared.poll_for(*place, *flags, cx, registration, attempt)
    }
}

impl<T: Streams + Channels, R, A> Drop for TaskWait<'_, T, R, A> {
    fn drop(&mut self) {
        self.shared.withdraw(self.place, &mut self.registration);
    }
}
