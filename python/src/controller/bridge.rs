//! One controller of Python behind the trait of Rust.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

use farhaul_cc::{
    AckEvent, Control, Controller, CustomMessage, DeliveryEvent, LossEvent, Path, ReceivedEvent, SentEvent,
    TimeoutEvent,
};
use farhaul_units::SendPeriod;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyType};

use super::callback;
use super::control::ControlView;
use super::events::{AckView, DeliveryView, LossView, TimeoutView};
use super::factory::Made;
use super::failure::{Failure, note};
use super::packets::{Batch, PacketsView};
use super::path::PathView;

/// Numbers of controllers, so that each has a name of its own.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// Bytes of the class in the name of a controller. With a number of 15 digits it is as long as the report of a failure has it
/// (`farhaul_cc::ShortName`).
const CLASS_BYTES: usize = 24;

/// A controller of Python.
pub(super) struct Bridge {
    /// No other controller has it.
    name: String,
    class: String,
    /// `None` once it has failed.
    live: Option<Live>,
    /// The constructor's exception, which ends the connection when it is established.
    unmade: Option<PyErr>,
    wants_light_acks: bool,
    wants_deliveries: bool,
    wants_messages: bool,
    wants_sent: bool,
    wants_received: bool,
    /// Packets of light acknowledgements that the next full one tells.
    acked: u32,
    messages: VecDeque<CustomMessage>,
    sent: Batch,
    received: Batch,
    /// The path at the last packet, for those that wait when the connection ends.
    last: Path,
}

/// The methods that the class has of its own, and the objects that they get.
struct Live {
    on_connect: Option<Py<PyAny>>,
    on_take_over: Option<Py<PyAny>>,
    on_ack: Option<Py<PyAny>>,
    on_delivery: Option<Py<PyAny>>,
    on_restart: Option<Py<PyAny>>,
    on_loss: Option<Py<PyAny>>,
    on_recovered: Option<Py<PyAny>>,
    on_timeout: Option<Py<PyAny>>,
    on_sent: Option<Py<PyAny>>,
    on_received: Option<Py<PyAny>>,
    on_custom_message: Option<Py<PyAny>>,
    on_close: Option<Py<PyAny>>,
    wants_light_acks: bool,
    path: Py<PathView>,
    control: Py<ControlView>,
    ack: Py<AckView>,
    delivery: Py<DeliveryView>,
    loss: Py<LossView>,
    timeout: Py<TimeoutView>,
    packets: Py<PacketsView>,
}

/// An exception, and the callback that raised it.
type Raised = (&'static str, PyErr);

impl Live {
    fn make(py: Python<'_>, make: &Py<PyAny>, seed: u64) -> PyResult<Self> {
        static BASE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let base = BASE.import(py, "farhaul.cc", "Controller")?;
        let object = make.bind(py).call0()?;
        if !object.is_instance(base)? {
            let what = format!("{} is no farhaul.cc.Controller", object.repr()?);
            return Err(PyTypeError::new_err(what));
        }
        let class = object.get_type();
        let own = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            let inherited = class.getattr(name)?.is(base.getattr(name)?);
            if inherited { Ok(None) } else { object.getattr(name).map(|method| Some(method.unbind())) }
        };
        Ok(Self {
            on_connect: own("on_connect")?,
            on_take_over: own("on_take_over")?,
            on_ack: own("on_ack")?,
            on_delivery: own("on_delivery")?,
            on_restart: own("on_restart")?,
            on_loss: own("on_loss")?,
            on_recovered: own("on_recovered")?,
            on_timeout: own("on_timeout")?,
            on_sent: own("on_sent")?,
            on_received: own("on_received")?,
            on_custom_message: own("on_custom_message")?,
            on_close: own("on_close")?,
            wants_light_acks: object.getattr("light_acks")?.is_truthy()?,
            path: Py::new(py, PathView::new(seed))?,
            control: Py::new(py, ControlView::new())?,
            ack: Py::new(py, AckView::default())?,
            delivery: Py::new(py, DeliveryView::default())?,
            loss: Py::new(py, LossView::default())?,
            timeout: Py::new(py, TimeoutView::default())?,
            packets: Py::new(py, PacketsView::default())?,
        })
    }

    /// Fills the objects of a call.
    fn fill(&self, py: Python<'_>, path: &Path, control: &Control) {
        self.path.borrow_mut(py).path = *path;
        let mut view = self.control.borrow_mut(py);
        (view.control, view.now) = (*control, path.now);
    }

    /// Calls the methods for packets, if some wait.
    fn tell_packets(&self, py: Python<'_>, sent: &mut Batch, received: &mut Batch) -> Result<(), Raised> {
        for (name, method, batch) in [("on_sent", &self.on_sent, sent), ("on_received", &self.on_received, received)] {
            if let Some(method) = method
                && batch.hand_over(py, &self.packets)
            {
                unless_passed_on(py, name, method.call1(py, (&self.path, &self.packets, &self.control)).map(drop))?;
            }
        }
        Ok(())
    }
}

/// The result of a callback. Ctrl-C is not its failure.
fn unless_passed_on(py: Python<'_>, name: &'static str, called: PyResult<()>) -> Result<(), Raised> {
    match called {
        Err(error) if !callback::pass_on(py, &error) => Err((name, error)),
        _ => Ok(()),
    }
}

/// The first letters of a class.
fn beginning(class: &str) -> &str {
    let end =
        class.char_indices().map(|(at, letter)| at + letter.len_utf8()).take_while(|end| *end <= CLASS_BYTES).last();
    &class[..end.unwrap_or_default()]
}

/// The method and the objects of a call.
type Call<'a, 'py> = (Python<'py>, &'a Live);

impl Bridge {
    /// A controller for one connection. A constructor that raises ends the connection once it is established.
    pub(super) fn new(made: &Made, seed: u64) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (live, unmade) = match callback::call(|py| Live::make(py, &made.make, seed)) {
            Some(Ok(live)) => (Some(live), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        let has = |wanted: fn(&Live) -> bool| live.as_ref().is_some_and(wanted);
        Self {
            name: format!("{}#{number}", beginning(&made.label)),
            class: made.label.clone(),
            wants_light_acks: has(|live| live.wants_light_acks),
            wants_deliveries: has(|live| live.on_delivery.is_some() || live.on_restart.is_some()),
            wants_messages: has(|live| live.on_custom_message.is_some()),
            wants_sent: has(|live| live.on_sent.is_some()),
            wants_received: has(|live| live.on_received.is_some()),
            live,
            unmade,
            acked: 0,
            messages: VecDeque::new(),
            sent: Batch::default(),
            received: Batch::default(),
            last: Path::default(),
        }
    }

    /// Calls a method, if the class has it: `arguments` calls it with the objects that it filled. Packets that wait are told before.
    fn call(
        &mut self,
        name: &'static str,
        method: fn(&Live) -> Option<&Py<PyAny>>,
        (path, control): (&Path, &mut Control),
        arguments: impl FnOnce(Call<'_, '_>, &Py<PyAny>) -> PyResult<()>,
    ) {
        let Self { live: Some(live), messages, sent, received, .. } = self else { return };
        let method = method(live);
        if method.is_none() && !sent.is_due() && !received.is_due() {
            return;
        }
        let called = callback::call(|py| {
            live.fill(py, path, control);
            live.tell_packets(py, sent, received)?;
            if let Some(method) = method {
                unless_passed_on(py, name, arguments((py, live), method))?;
            }
            let mut view = live.control.borrow_mut(py);
            *control = view.control;
            messages.extend(view.messages.drain(..));
            Ok(())
        });
        if let Some(Err((name, error))) = called {
            self.fail(name, error);
        }
    }

    /// Tells packets that wait, if a call is due for them.
    fn tell_due_packets(&mut self, path: &Path, control: &mut Control) {
        self.call("", |_| None, (path, control), |_, _| Ok(()));
    }

    /// Ends the connection: the transport takes an unwinding for a failed controller. The exception waits for whoever asks.
    fn fail(&mut self, callback: &'static str, error: PyErr) {
        self.live = None;
        let message = format!("{} raised an exception in {callback}", self.class);
        note(&self.name, Failure { controller: self.class.clone(), callback, error });
        // Without the hook of panics, which would print it.
        resume_unwind(Box::new(message));
    }
}

impl Controller for Bridge {
    fn name(&self) -> &str {
        &self.name
    }

    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        control.send_period = SendPeriod::UNPACED;
        if self.live.as_ref().is_none_or(|live| live.on_take_over.is_none()) {
            return self.on_connect(path, control);
        }
        self.call(
            "on_take_over",
            |live| live.on_take_over.as_ref(),
            (path, control),
            |(py, live), method| method.call1(py, (&live.path, &live.control)).map(drop),
        );
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        if let Some(error) = self.unmade.take() {
            self.fail("its constructor", error);
        }
        self.call(
            "on_connect",
            |live| live.on_connect.as_ref(),
            (path, control),
            |(py, live), method| method.call1(py, (&live.path, &live.control)).map(drop),
        );
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        let newly_acked = self.acked + ack.newly_acked;
        if ack.light && !self.wants_light_acks {
            self.acked = newly_acked;
            return;
        }
        self.acked = 0;
        self.sent.hurry();
        self.call(
            "on_ack",
            |live| live.on_ack.as_ref(),
            (path, control),
            |(py, live), method| {
                {
                    let mut view = live.ack.borrow_mut(py);
                    view.0 = *ack;
                    view.0.newly_acked = newly_acked;
                }
                method.call1(py, (&live.path, &live.ack, &live.control)).map(drop)
            },
        );
    }

    fn on_delivery(&mut self, path: &Path, delivery: &DeliveryEvent, control: &mut Control) {
        self.call(
            "on_delivery",
            |live| live.on_delivery.as_ref(),
            (path, control),
            |(py, live), method| {
                live.delivery.borrow_mut(py).0 = *delivery;
                method.call1(py, (&live.path, &live.delivery, &live.control)).map(drop)
            },
        );
    }

    fn on_restart(&mut self, path: &Path, control: &mut Control) {
        self.call(
            "on_restart",
            |live| live.on_restart.as_ref(),
            (path, control),
            |(py, live), method| method.call1(py, (&live.path, &live.control)).map(drop),
        );
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        self.call(
            "on_loss",
            |live| live.on_loss.as_ref(),
            (path, control),
            |(py, live), method| {
                {
                    let mut view = live.loss.borrow_mut(py);
                    view.ranges.clear();
                    view.ranges.extend_from_slice(loss.ranges);
                    (view.newly_lost, view.largest_sent) = (loss.newly_lost, loss.largest_sent.value());
                }
                method.call1(py, (&live.path, &live.loss, &live.control)).map(drop)
            },
        );
    }

    fn on_recovered(&mut self, path: &Path, spurious: bool, control: &mut Control) {
        self.call(
            "on_recovered",
            |live| live.on_recovered.as_ref(),
            (path, control),
            |(py, live), method| method.call1(py, (&live.path, spurious, &live.control)).map(drop),
        );
    }

    fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent, control: &mut Control) {
        self.call(
            "on_timeout",
            |live| live.on_timeout.as_ref(),
            (path, control),
            |(py, live), method| {
                live.timeout.borrow_mut(py).0 = *timeout;
                method.call1(py, (&live.path, &live.timeout, &live.control)).map(drop)
            },
        );
    }

    fn on_sent(&mut self, path: &Path, sent: &SentEvent<'_>, control: &mut Control) {
        if self.wants_sent {
            self.last = *path;
            self.sent.add(sent.packets, sent.at, Some(sent.retransmission), path.now);
            self.tell_due_packets(path, control);
        }
    }

    fn on_received(&mut self, path: &Path, received: &ReceivedEvent<'_>, control: &mut Control) {
        if self.wants_received {
            self.last = *path;
            self.received.add(received.packets, received.at, None, path.now);
            self.tell_due_packets(path, control);
        }
    }

    fn on_custom_message(&mut self, path: &Path, kind: u16, body: &[u8], control: &mut Control) {
        self.call(
            "on_custom_message",
            |live| live.on_custom_message.as_ref(),
            (path, control),
            |(py, live), method| method.call1(py, (&live.path, kind, PyBytes::new(py, body), &live.control)).map(drop),
        );
    }

    fn next_message(&mut self) -> Option<CustomMessage> {
        self.messages.pop_front()
    }

    fn on_close(&mut self) {
        let Some(live) = self.live.take() else { return };
        let Self { sent, received, last, .. } = self;
        // The connection has ended, so nobody would see an exception of the last calls but the interpreter's own report.
        callback::call(|py| {
            live.fill(py, last, &Control::initial());
            let told = live.tell_packets(py, sent, received);
            let closed = live.on_close.as_ref().map_or(Ok(()), |method| method.call0(py).map(drop));
            for (_, error) in [told, unless_passed_on(py, "on_close", closed)].into_iter().filter_map(Result::err) {
                error.write_unraisable(py, live.on_close.as_ref().map(|method| method.bind(py).as_any()));
            }
            drop(live);
        });
    }

    fn wants_packets(&self) -> bool {
        self.wants_sent || self.wants_received
    }

    fn wants_deliveries(&self) -> bool {
        self.wants_deliveries
    }

    fn wants_custom_messages(&self) -> bool {
        self.wants_messages
    }
}
