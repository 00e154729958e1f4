package io.github.redisdq;

/** The worker cannot run as it is configured; waiting would not help. The message says what to do. */
public final class ConfigurationException extends DqException {
    public ConfigurationException(String message) {
        super(message);
    }

    public ConfigurationException(String message, Throwable cause) {
        super(message, cause);
    }
}
