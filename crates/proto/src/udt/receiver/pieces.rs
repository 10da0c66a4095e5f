//! Packets that arrive in pieces, because the path no longer carries them whole.

use std::collections::VecDeque;

use farhaul_wire::udt4::Piece;

/// Most packets of which pieces are missing. A packet's pieces arrive in one train, so it is rarely more than one. The sender repeats
/// the whole packet if one is forgotten.
const MOST_PACKETS: usize = 64;

/// Packets of which some pieces have arrived.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// Oldest first.
    partial: VecDeque<Partial>,
    /// The memory of the last complete packet, for reuse.
    spare: Vec<u8>,
}

#[derive(Debug)]
struct Partial {
    seq: u32,
    field: u32,
    count: u8,
    /// A bit for each piece that has arrived.
    arrived: u64,
    payload: Vec<u8>,
}

impl Pieces {
    /// A piece arrived. Returns the payload of its packet if that is complete. Give the memory [back](Self::give_back) then.
    pub(super) fn on_piece(&mut self, piece: &Piece<'_>) -> Option<Vec<u8>> {
        let offset = piece.offset()?;
        let index = self.partial.iter().position(|partial| partial.seq == piece.seq.value());
        let index = match index {
            Some(index) if self.partial[index].is_of(piece) => index,
            // The packet was cut anew, because the path has changed again.
            Some(index) => {
                self.partial.remove(index);
                self.begin(piece)
            }
            None => self.begin(piece),
        };
        let partial = self.partial.get_mut(index)?;
        partial.payload.get_mut(offset..offset + piece.bytes.len())?.copy_from_slice(piece.bytes);
        partial.arrived |= 1 << piece.index;
        if partial.arrived.count_ones() < piece.count.into() {
            return None;
        }
        self.partial.remove(index).map(|partial| partial.payload)
    }

    /// Returns the memory of a packet for reuse.
    pub(super) fn give_back(&mut self, payload: Vec<u8>) {
        self.spare = payload;
    }

    fn begin(&mut self, piece: &Piece<'_>) -> usize {
        if self.partial.len() == MOST_PACKETS {
            self.partial.pop_front();
        }
        let mut payload = std::mem::take(&mut self.spare);
        payload.clear();
        payload.resize(piece.total.into(), 0);
        let (seq, field) = (piece.seq.value(), piece.field.to_word());
        self.partial.push_back(Partial { seq, field, count: piece.count, arrived: 0, payload });
        self.partial.len() - 1
    }

    pub(super) fn memory(&self) -> usize {
        self.spare.capacity() + self.partial.iter().map(|partial| partial.payload.capacity()).sum::<usize>()
    }
}

impl Partial {
    fn is_of(&self, piece: &Piece<'_>) -> bool {
        (self.field, self.count, self.payload.len()) == (piece.field.to_word(), piece.count, piece.total.into())
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::{MsgNo, SeqNo};
    use farhaul_wire::udt4::{MessageField, Position};

    use super::*;

    fn piece(seq: u32, index: u8, bytes: &[u8]) -> Piece<'_> {
        let field = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };
        Piece { seq: SeqNo::new(seq), field, total: 25, index, count: 3, bytes }
    }

    #[test]
    fn pieces_in_any_order_make_a_packet_once() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.on_piece(&piece(7, 2, &[3; 5])), None);
        assert_eq!(pieces.on_piece(&piece(7, 0, &[1; 10])), None);
        assert_eq!(pieces.on_piece(&piece(7, 0, &[1; 10])), None, "again");
        let whole = pieces.on_piece(&piece(7, 1, &[2; 10])).unwrap();
        assert_eq!(whole, [[1; 10].as_slice(), &[2; 10], &[3; 5]].concat());
        pieces.give_back(whole);
        assert_eq!(pieces.on_piece(&piece(7, 1, &[2; 10])), None, "it begins anew");
    }

    #[test]
    fn a_packet_that_is_cut_anew_forgets_its_pieces() {
        let mut pieces = Pieces::default();
        pieces.on_piece(&piece(7, 0, &[1; 10]));
        let halves = |index, bytes| Piece { count: 2, ..piece(7, index, bytes) };
        assert_eq!(pieces.on_piece(&halves(1, &[2; 12])), None);
        assert_eq!(pieces.on_piece(&halves(0, &[1; 13])).unwrap(), [[1; 13].as_slice(), &[2; 12]].concat());
    }

    #[test]
    fn memory_is_bounded_however_many_packets_begin() {
        let mut pieces = Pieces::default();
        for seq in 0..10_000 {
            pieces.on_piece(&Piece { total: u16::MAX, ..piece(seq, 0, &[1; 10]) });
        }
        assert!(pieces.memory() <= MOST_PACKETS * usize::from(u16::MAX), "{}", pieces.memory());
    }
}
