package io.github.redisdq;

/** A result that cannot be encoded. */
final class UnencodableException extends DqException {
    UnencodableException(Throwable cause) {
        super("result cannot be encoded: " + Guard.text(cause), cause);
    }
}
