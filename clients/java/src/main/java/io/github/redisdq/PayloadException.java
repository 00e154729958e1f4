package io.github.redisdq;

/**
 * The payload cannot be decoded by the queue's codec. If a handler throws this, the job is dead at once: another
 * attempt would find the same payload. {@link Job#payload()} still has its bytes.
 */
public final class PayloadException extends DqException {
    static final String SAID = "payload cannot be decoded: ";

    public PayloadException(String message, Throwable cause) {
        super(message, cause);
    }
}
