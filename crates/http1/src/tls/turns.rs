//! Turns of the handshakes of a worker.
//!
//! A handshake signs, which takes milliseconds with RSA. A worker takes one step of one handshake, and then everything
//! else that is ready. Addresses take turns: a handshake waits for at most one step of each other address.

use std::{future::poll_fn, pin::pin, task::Poll};

use tokio::task::yield_now;

use crate::pool::Slot;

/// Runs a handshake, each of whose steps waits for the turn of its connection.
pub(super) async fn in_turns<F: Future>(slot: &Slot, handshake: F) -> F::Output {
    let mut handshake = pin!(handshake);
    loop {
        let address_turn = slot.address().turn.lock().await;
        let worker_turn = slot.pool.handshake_turn.lock().await;
        // The task continues behind those that sockets have woken meanwhile.
        yield_now().await;
        let step = poll_fn(|context| Poll::Ready(handshake.as_mut().poll(context))).await;
        if let Poll::Ready(output) = step {
            return output;
        }
        drop(worker_turn);
        drop(address_turn);
        woken().await;
    }
}

/// Resolves when the task is woken.
async fn woken() {
    let mut is_woken = false;
    poll_fn(|_| {
        if is_woken {
            return Poll::Ready(());
        }
        is_woken = true;
        Poll::Pending
    })
    .await;
}
