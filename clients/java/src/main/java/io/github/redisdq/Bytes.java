package io.github.redisdq;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Texts of ids and keys, which may hold any bytes: those that are not UTF-8 are lone surrogates, U+DC80 to U+DCFF. */
final class Bytes {
    private static final int ESCAPE = 0xDC00;

    private Bytes() {}

    static byte[] of(String text) {
        for (int at = 0; at < text.length(); at++) {
            if (Character.isSurrogate(text.charAt(at))) {
                return escaped(text);
            }
        }
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static byte[] of(long number) {
        return Long.toString(number).getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] escaped(String text) {
        ByteBuffer out = ByteBuffer.allocate(text.length() * 4);
        for (int at = 0; at < text.length(); ) {
            int point = text.codePointAt(at);
            at += Character.charCount(point);
            if (point >= ESCAPE + 0x80 && point <= ESCAPE + 0xFF) {
                out.put((byte) (point - ESCAPE));
            } else {
                out.put(Character.toString(point).getBytes(StandardCharsets.UTF_8));
            }
        }
        return Arrays.copyOf(out.array(), out.position());
    }

    static String text(byte[] raw) {
        if (isAscii(raw)) { // as most texts are; a decoder for each would cost more than all else
            return new String(raw, StandardCharsets.US_ASCII);
        }
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(raw)).toString();
        } catch (CharacterCodingException error) {
            return unescaped(raw);
        }
    }

    private static boolean isAscii(byte[] raw) {
        for (byte each : raw) {
            if (each < 0) {
                return false;
            }
        }
        return true;
    }

    private static String unescaped(byte[] raw) {
        StringBuilder out = new StringBuilder();
        for (int at = 0; at < raw.length; ) {
            int size = sizeOf(raw, at);
            if (size == 0) {
                out.append((char) (ESCAPE + (raw[at++] & 0xFF)));
            } else {
                out.append(new String(raw, at, size, StandardCharsets.UTF_8));
                at += size;
            }
        }
        return out.toString();
    }

    /** The size of the character that begins here; 0: none does. */
    private static int sizeOf(byte[] raw, int at) {
        for (int size = 1; size <= 4 && at + size <= raw.length; size++) {
            try {
                StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(raw, at, size));
                return size;
            } catch (CharacterCodingException error) {
                // one byte more, perhaps
            }
        }
        return 0;
    }

    /** Cuts a text to at most this many bytes, between characters. */
    static byte[] cut(String text, int most) {
        byte[] raw = text.getBytes(StandardCharsets.UTF_8);
        int size = Math.min(raw.length, most);
        while (size < raw.length && size > 0 && (raw[size] & 0xC0) == 0x80) {
            size--;
        }
        return Arrays.copyOf(raw, size);
    }

    static boolean contains(byte[] whole, byte[] part) {
        for (int at = 0; at + part.length <= whole.length; at++) {
            if (Arrays.equals(whole, at, at + part.length, part, 0, part.length)) {
                return true;
            }
        }
        return false;
    }
}
