//! Choosing a send rate: a fixed rate, a cap, and a custom controller. `cargo run --release --example controller`.

use std::io;
use std::thread;

use farhaul::cc::{AckEvent, Control, Controller, LossEvent, Path};
use farhaul::units::SendPeriod;
use farhaul::{Builder, Endpoint, Listener, Rate};

const BYTES: usize = 10_000_000;

/// Textbook additive increase, multiplicative decrease: the window grows by one packet per RTT and halves after a loss.
struct Aimd {
    window: f64,
}

impl Controller for Aimd {
    fn name(&self) -> &str {
        "aimd"
    }

    fn on_connect(&mut self, _: &Path, control: &mut Control) {
        control.cwnd = Some(self.window);
        control.send_period = SendPeriod::UNPACED;
    }

    fn on_ack(&mut self, _: &Path, ack: &AckEvent, control: &mut Control) {
        self.window += f64::from(ack.newly_acked) / self.window;
        control.cwnd = Some(self.window);
    }

    fn on_loss(&mut self, _: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        if loss.newly_lost > 0 {
            self.window = (self.window / 2.0).max(2.0);
            control.cwnd = Some(self.window);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    transfer("the default", Endpoint::builder().plain())?;
    transfer("a fixed rate", Endpoint::builder().plain().controller("fixed:rate=100mbit"))?;
    transfer("the default, capped", Endpoint::builder().plain().max_rate(Rate::from_megabits_per_second(50)))?;
    transfer("our own", Endpoint::builder().plain().controller_with(|_seed| Box::new(Aimd { window: 16.0 })))
}

fn transfer(what: &str, builder: Builder) -> Result<(), Box<dyn std::error::Error>> {
    let listener = Listener::plain("127.0.0.1:0")?;
    let address = listener.local_addr();
    let receiver = thread::spawn(move || -> io::Result<u64> {
        let (mut stream, _) = listener.accept()?;
        io::copy(&mut stream, &mut io::sink())
    });
    let stream = builder.bind("127.0.0.1:0".parse()?)?.connect(address)?;
    let before = stream.stats()?;
    stream.send_all(&vec![7; BYTES])?;
    stream.finish()?;
    let after = stream.stats()?;
    println!("{what}: {}", after.send_rate_since(&before));
    receiver.join().expect("the receiver does not panic")?;
    Ok(())
}
