//! The block of 256 bytes by which a receiver names a file. A list of names ends with a block of zeros.

/// Bytes of a block.
pub const NAME_BLOCK_LEN: usize = 256;

/// The block that names a file. An empty name ends a list.
///
/// # Errors
/// The name has no room, or contains the byte that ends names.
pub fn encode_name(name: &[u8]) -> Result<[u8; NAME_BLOCK_LEN], NameError> {
    if name.contains(&0) {
        return Err(NameError::Nul);
    }
    let mut block = [0; NAME_BLOCK_LEN];
    match block.get_mut(..name.len()) {
        Some(room) if name.len() < NAME_BLOCK_LEN => room.copy_from_slice(name),
        _ => return Err(NameError::TooLong(name.len())),
    }
    Ok(block)
}

/// The name in a block; empty for the end of a list. Original programs send the content of their memory after it, which
/// is ignored.
///
/// # Errors
/// No byte ends the name.
pub fn decode_name(block: &[u8; NAME_BLOCK_LEN]) -> Result<&[u8], NameError> {
    let end = block.iter().position(|&byte| byte == 0).ok_or(NameError::Unterminated)?;
    Ok(&block[..end])
}

/// Why a name was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// A block has room for 255 bytes.
    #[error("a file name of {0} bytes, and RBUDP has room for 255")]
    TooLong(usize),
    /// A zero byte ends a name.
    #[error("the file name contains a zero byte")]
    Nul,
    /// The block has no zero byte.
    #[error("the block of 256 bytes does not end the file name")]
    Unterminated,
}
