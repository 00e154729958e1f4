package io.github.redisdq;

/** Something cannot work as it is configured, and waiting would not help. The message says what to do. */
public final class ConfigurationException extends DqException {
    public ConfigurationException(String message) {
        super(message);
    }

    public ConfigurationException(String message, Throwable cause) {
        super(message, cause);
    }
}
