package io.github.redisdq.redisson;

import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import java.util.concurrent.TimeUnit;
import org.redisson.api.ObjectEncoding;
import org.redisson.api.ObjectListener;
import org.redisson.api.RExpirable;
import org.redisson.api.RExpirableAsync;
import org.redisson.api.RFuture;

/** The asynchronous half of {@link RedissonKey}. */
@SuppressWarnings("deprecation") // of Redisson
abstract class RedissonKeyAsync implements RExpirableAsync {
    final RExpirable key;

    RedissonKeyAsync(RExpirable key) {
        this.key = key;
    }

    @Override
    public RFuture<Long> getIdleTimeAsync() {
        return key.getIdleTimeAsync();
    }

    @Override
    public RFuture<Integer> getReferenceCountAsync() {
        return key.getReferenceCountAsync();
    }

    @Override
    public RFuture<Integer> getAccessFrequencyAsync() {
        return key.getAccessFrequencyAsync();
    }

    @Override
    public RFuture<ObjectEncoding> getInternalEncodingAsync() {
        return key.getInternalEncodingAsync();
    }

    @Override
    public RFuture<Long> sizeInMemoryAsync() {
        return key.sizeInMemoryAsync();
    }

    @Override
    public RFuture<Void> restoreAsync(byte[] state) {
        return key.restoreAsync(state);
    }

    @Override
    public RFuture<Void> restoreAsync(byte[] state, long timeToLive, TimeUnit unit) {
        return key.restoreAsync(state, timeToLive, unit);
    }

    @Override
    public RFuture<Void> restoreAndReplaceAsync(byte[] state) {
        return key.restoreAndReplaceAsync(state);
    }

    @Override
    public RFuture<Void> restoreAndReplaceAsync(byte[] state, long timeToLive, TimeUnit unit) {
        return key.restoreAndReplaceAsync(state, timeToLive, unit);
    }

    @Override
    public RFuture<byte[]> dumpAsync() {
        return key.dumpAsync();
    }

    @Override
    public RFuture<Boolean> touchAsync() {
        return key.touchAsync();
    }

    @Override
    public RFuture<Void> migrateAsync(String host, int port, int database, long timeoutMs) {
        return key.migrateAsync(host, port, database, timeoutMs);
    }

    @Override
    public RFuture<Void> copyAsync(String host, int port, int database, long timeoutMs) {
        return key.copyAsync(host, port, database, timeoutMs);
    }

    @Override
    public RFuture<Boolean> copyAsync(String destination) {
        return key.copyAsync(destination);
    }

    @Override
    public RFuture<Boolean> copyAsync(String destination, int database) {
        return key.copyAsync(destination, database);
    }

    @Override
    public RFuture<Boolean> copyAndReplaceAsync(String destination) {
        return key.copyAndReplaceAsync(destination);
    }

    @Override
    public RFuture<Boolean> copyAndReplaceAsync(String destination, int database) {
        return key.copyAndReplaceAsync(destination, database);
    }

    @Override
    public RFuture<Boolean> moveAsync(int database) {
        return key.moveAsync(database);
    }

    @Override
    public RFuture<Void> renameAsync(String newName) {
        return key.renameAsync(newName);
    }

    @Override
    public RFuture<Boolean> renamenxAsync(String newName) {
        return key.renamenxAsync(newName);
    }

    @Override
    public RFuture<Boolean> isExistsAsync() {
        return key.isExistsAsync();
    }

    @Override
    public RFuture<Integer> addListenerAsync(ObjectListener listener) {
        return key.addListenerAsync(listener);
    }

    @Override
    public RFuture<Void> removeListenerAsync(int id) {
        return key.removeListenerAsync(id);
    }

    @Override
    public RFuture<Boolean> expireAsync(long timeToLive, TimeUnit unit) {
        return key.expireAsync(timeToLive, unit);
    }

    @Override
    public RFuture<Boolean> expireAtAsync(Date time) {
        return key.expireAtAsync(time);
    }

    @Override
    public RFuture<Boolean> expireAtAsync(long timestamp) {
        return key.expireAtAsync(timestamp);
    }

    @Override
    public RFuture<Boolean> expireAsync(Instant time) {
        return key.expireAsync(time);
    }

    @Override
    public RFuture<Boolean> expireIfSetAsync(Instant time) {
        return key.expireIfSetAsync(time);
    }

    @Override
    public RFuture<Boolean> expireIfNotSetAsync(Instant time) {
        return key.expireIfNotSetAsync(time);
    }

    @Override
    public RFuture<Boolean> expireIfGreaterAsync(Instant time) {
        return key.expireIfGreaterAsync(time);
    }

    @Override
    public RFuture<Boolean> expireIfLessAsync(Instant time) {
        return key.expireIfLessAsync(time);
    }

    @Override
    public RFuture<Boolean> expireAsync(Duration duration) {
        return key.expireAsync(duration);
    }

    @Override
    public RFuture<Boolean> expireIfSetAsync(Duration duration) {
        return key.expireIfSetAsync(duration);
    }

    @Override
    public RFuture<Boolean> expireIfNotSetAsync(Duration duration) {
        return key.expireIfNotSetAsync(duration);
    }

    @Override
    public RFuture<Boolean> expireIfGreaterAsync(Duration duration) {
        return key.expireIfGreaterAsync(duration);
    }

    @Override
    public RFuture<Boolean> expireIfLessAsync(Duration duration) {
        return key.expireIfLessAsync(duration);
    }

    @Override
    public RFuture<Boolean> clearExpireAsync() {
        return key.clearExpireAsync();
    }

    @Override
    public RFuture<Long> remainTimeToLiveAsync() {
        return key.remainTimeToLiveAsync();
    }

    @Override
    public RFuture<Long> getExpireTimeAsync() {
        return key.getExpireTimeAsync();
    }
}
