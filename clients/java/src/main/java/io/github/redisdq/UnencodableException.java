package io.github.redisdq;

/** A result that cannot be encoded. */
final class UnencodableException extends DqException {
    /** {@code said}: the text of its cause. */
    UnencodableException(String said, Throwable cause) {
        super("result cannot be encoded: " + said, cause);
    }
}
