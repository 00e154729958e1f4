package io.github.redisdq;

import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import java.util.concurrent.TimeUnit;
import org.redisson.api.ObjectEncoding;
import org.redisson.api.ObjectListener;
import org.redisson.api.RExpirable;
import org.redisson.api.RFuture;
import org.redisson.client.codec.Codec;

/** What Redisson does with a key of any type; a queue has one, with all jobs. */
@SuppressWarnings("deprecation") // of Redisson
abstract class RedissonKey implements RExpirable {
    private final RExpirable key;

    RedissonKey(RExpirable key) {
        this.key = key;
    }

    @Override
    public Long getIdleTime() {
        return key.getIdleTime();
    }

    @Override
    public int getReferenceCount() {
        return key.getReferenceCount();
    }

    @Override
    public int getAccessFrequency() {
        return key.getAccessFrequency();
    }

    @Override
    public ObjectEncoding getInternalEncoding() {
        return key.getInternalEncoding();
    }

    @Override
    public long sizeInMemory() {
        return key.sizeInMemory();
    }

    @Override
    public void restore(byte[] state) {
        key.restore(state);
    }

    @Override
    public void restore(byte[] state, long timeToLive, TimeUnit unit) {
        key.restore(state, timeToLive, unit);
    }

    @Override
    public void restoreAndReplace(byte[] state) {
        key.restoreAndReplace(state);
    }

    @Override
    public void restoreAndReplace(byte[] state, long timeToLive, TimeUnit unit) {
        key.restoreAndReplace(state, timeToLive, unit);
    }

    @Override
    public byte[] dump() {
        return key.dump();
    }

    @Override
    public boolean touch() {
        return key.touch();
    }

    @Override
    public void migrate(String host, int port, int database, long timeoutMs) {
        key.migrate(host, port, database, timeoutMs);
    }

    @Override
    public void copy(String host, int port, int database, long timeoutMs) {
        key.copy(host, port, database, timeoutMs);
    }

    @Override
    public boolean copy(String destination) {
        return key.copy(destination);
    }

    @Override
    public boolean copy(String destination, int database) {
        return key.copy(destination, database);
    }

    @Override
    public boolean copyAndReplace(String destination) {
        return key.copyAndReplace(destination);
    }

    @Override
    public boolean copyAndReplace(String destination, int database) {
        return key.copyAndReplace(destination, database);
    }

    @Override
    public boolean move(int database) {
        return key.move(database);
    }

    @Override
    public String getName() {
        return key.getName();
    }

    @Override
    public void rename(String newName) {
        key.rename(newName);
    }

    @Override
    public boolean renamenx(String newName) {
        return key.renamenx(newName);
    }

    @Override
    public boolean isExists() {
        return key.isExists();
    }

    @Override
    public Codec getCodec() {
        return key.getCodec();
    }

    @Override
    public int addListener(ObjectListener listener) {
        return key.addListener(listener);
    }

    @Override
    public void removeListener(int id) {
        key.removeListener(id);
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
    public boolean expire(long timeToLive, TimeUnit unit) {
        return key.expire(timeToLive, unit);
    }

    @Override
    public boolean expireAt(long timestamp) {
        return key.expireAt(timestamp);
    }

    @Override
    public boolean expireAt(Date time) {
        return key.expireAt(time);
    }

    @Override
    public boolean expire(Instant time) {
        return key.expire(time);
    }

    @Override
    public boolean expireIfSet(Instant time) {
        return key.expireIfSet(time);
    }

    @Override
    public boolean expireIfNotSet(Instant time) {
        return key.expireIfNotSet(time);
    }

    @Override
    public boolean expireIfGreater(Instant time) {
        return key.expireIfGreater(time);
    }

    @Override
    public boolean expireIfLess(Instant time) {
        return key.expireIfLess(time);
    }

    @Override
    public boolean expire(Duration duration) {
        return key.expire(duration);
    }

    @Override
    public boolean expireIfSet(Duration duration) {
        return key.expireIfSet(duration);
    }

    @Override
    public boolean expireIfNotSet(Duration duration) {
        return key.expireIfNotSet(duration);
    }

    @Override
    public boolean expireIfGreater(Duration duration) {
        return key.expireIfGreater(duration);
    }

    @Override
    public boolean expireIfLess(Duration duration) {
        return key.expireIfLess(duration);
    }

    @Override
    public boolean clearExpire() {
        return key.clearExpire();
    }

    @Override
    public long remainTimeToLive() {
        return key.remainTimeToLive();
    }

    @Override
    public long getExpireTime() {
        return key.getExpireTime();
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
