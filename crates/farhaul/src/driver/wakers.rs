//! The wakers of tasks that wait for one condition. Adding, replacing and removing take constant time.

use std::task::Waker;

/// Places kept for later tasks when no task waits any more. Memory for more is released.
const KEPT: usize = 64;

/// Wakers by place. Places are reused, keys never.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    places: Vec<Option<(u64, Waker)>>,
    free: Vec<usize>,
    /// The number of the next key.
    next: u64,
}

/// The key by which a task finds its waker again.
#[derive(Debug)]
struct Key {
    place: usize,
    number: u64,
}

/// A task's entry among the wakers of one condition. It is empty before the task has to wait, and after the task was
/// woken.
#[derive(Debug, Default)]
pub(crate) struct Registration(Option<Key>);

impl Wakers {
    /// Registers `waker` in place of the previous one of this registration. Returns the previous one: its drop runs
    /// foreign code, which must not happen under a lock.
    pub(super) fn register(&mut self, registration: &mut Registration, waker: &Waker) -> Option<Waker> {
        if let Some(registered) = self.find(registration) {
            let differs = !registered.will_wake(waker);
            return differs.then(|| std::mem::replace(registered, waker.clone()));
        }
        let number = self.next;
        self.next += 1;
        let entry = Some((number, waker.clone()));
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place] = entry;
                place
            }
            None => {
                self.places.push(entry);
                self.places.len() - 1
            }
        };
        registration.0 = Some(Key { place, number });
        None
    }

    /// Removes a waker and returns it for the caller to drop. `None` if it was woken meanwhile.
    pub(super) fn withdraw(&mut self, registration: &mut Registration) -> Option<Waker> {
        let Key { place, number } = registration.0.take()?;
        let (_, waker) = self.places.get_mut(place)?.take_if(|(its, _)| *its == number)?;
        self.free.push(place);
        if self.free.len() == self.places.len() {
            self.clear();
        }
        Some(waker)
    }

    /// Moves all wakers to the end of `out`.
    pub(super) fn take_all(&mut self, out: &mut Vec<Waker>) {
        out.extend(self.places.drain(..).flatten().map(|(_, waker)| waker));
        self.clear();
    }

    /// Whether no task waits.
    pub(super) fn is_empty(&self) -> bool {
        self.places.len() == self.free.len()
    }

    /// The number of waiting tasks.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    fn find(&mut self, registration: &Registration) -> Option<&mut Waker> {
        let Key { place, number } = registration.0.as_ref()?;
        self.places.get_mut(*place)?.as_mut().filter(|(its, _)| its == number).map(|(_, waker)| waker)
    }

    fn clear(&mut self) {
        self.places.clear();
        self.places.shrink_to(KEPT);
        self.free.clear();
        self.free.shrink_to(KEPT);
    }
}

impl Registration {
    /// Whether a waker may still be registered.
    pub(super) const fn is_set(&self) -> bool {
        self.0.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    struct Nothing;

    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }

    /// A distinct waker, and the task behind it for counting its holders.
    fn waker() -> (Waker, Arc<Nothing>) {
        let task = Arc::new(Nothing);
        (Waker::from(Arc::clone(&task)), task)
    }

    #[test]
    fn a_task_that_registers_again_is_woken_once_by_its_latest_waker() {
        let (mut wakers, mut registration) = (Wakers::default(), Registration::default());
        let (first, second) = (waker().0, waker().0);
        assert!(wakers.register(&mut registration, &first).is_none());
        assert!(wakers.register(&mut registration, &first).is_none());
        let replaced = wakers.register(&mut registration, &second);
        assert!(replaced.is_some_and(|replaced| replaced.will_wake(&first)));
        let mut woken = Vec::new();
        wakers.take_all(&mut woken);
        assert!(woken.len() == 1 && woken[0].will_wake(&second));
    }

    #[test]
    fn a_woken_registration_does_not_withdraw_the_next_waker_in_its_place() {
        let mut wakers = Wakers::default();
        let mut registrations = [Registration::default(), Registration::default()];
        wakers.register(&mut registrations[0], &waker().0);
        wakers.take_all(&mut Vec::new());
        wakers.register(&mut registrations[1], &waker().0);
        assert!(wakers.withdraw(&mut registrations[0]).is_none());
        assert_eq!(wakers.len(), 1);
        assert!(wakers.withdraw(&mut registrations[1]).is_some());
        assert!(wakers.withdraw(&mut registrations[1]).is_none());
        assert_eq!(wakers.len(), 0);
    }

    #[test]
    fn a_withdrawn_waker_is_held_by_nobody_and_its_memory_is_given_back() {
        let mut wakers = Wakers::default();
        let mut all: Vec<(Arc<Nothing>, Registration)> = Vec::new();
        for _ in 0..20_000 {
            let (waker, task) = waker();
            let mut registration = Registration::default();
            wakers.register(&mut registration, &waker);
            all.push((task, registration));
        }
        for (task, registration) in &mut all {
            wakers.withdraw(registration);
            assert_eq!(Arc::strong_count(task), 1);
        }
        assert!(wakers.places.capacity() <= KEPT && wakers.free.capacity() <= KEPT);
    }

    /// Searching all wakers at each registration would take 2·10^10 comparisons.
    #[test]
    fn two_hundred_thousand_tasks_register_at_one_place_each() {
        let mut wakers = Wakers::default();
        let mut registrations: Vec<Registration> = Vec::new();
        registrations.resize_with(200_000, Registration::default);
        for registration in &mut registrations {
            wakers.register(registration, &waker().0);
        }
        for registration in registrations.iter_mut().step_by(2) {
            wakers.withdraw(registration);
        }
        for registration in registrations.iter_mut().step_by(2) {
            wakers.register(registration, &waker().0);
        }
        assert_eq!((wakers.len(), wakers.places.len()), (200_000, 200_000));
    }
}
