package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.redisdq.testing.DqExtension;
import io.github.redisdq.testing.DqServer;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Nothing that a program throws, at any place, stops or stalls a worker. */
@ExtendWith(DqExtension.class)
@Timeout(300)
class HostileTest {
    @ParameterizedTest
    @EnumSource
    void theWorkerSurvives(HostileScene.Place place, DqServer server) throws InterruptedException {
        new HostileScene(place, server.url()).play();
    }

    /** The canary: the same with a door that lets errors through. */
    @Test
    void withoutTheDoorItDoesNot(DqServer server, @TempDir Path folder) throws Exception {
        try (URLClassLoader loader = withOpenDoor(folder)) {
            Class<?> scene = loader.loadClass(HostileScene.class.getName());
            Object place = loader.loadClass(HostileScene.Place.class.getName()).getEnumConstants()[0];
            Constructor<?> make = scene.getDeclaredConstructor(place.getClass(), String.class);
            make.setAccessible(true);
            Method play = scene.getDeclaredMethod("play");
            play.setAccessible(true);
            Object made = make.newInstance(place, server.url());
            Throwable failed = assertThrows(InvocationTargetException.class, () -> play.invoke(made)).getCause();
            assertTrue(String.valueOf(failed).contains("the worker lost a thread"), () -> String.valueOf(failed));
        }
    }

    /** The library's classes anew, with a Guard that catches only what is no Error. */
    private static URLClassLoader withOpenDoor(Path folder) throws IOException {
        Path source = Path.of("src/main/java/io/github/redisdq/Guard.java");
        String closed = Files.readString(source);
        String open = closed.replace(
                "} catch (Throwable error) { // an Error too: the thread must live",
                "} catch (Error error) {\n throw error;\n } catch (Throwable error) {");
        assertTrue(!open.equals(closed), "the door has changed: change its canary");
        Path changed = Files.writeString(folder.resolve("Guard.java"), open);
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        String path = System.getProperty("java.class.path");
        assertEquals(0, compiler.run(null, null, null, "-d", folder.toString(), "-cp", path, changed.toString()));
        URL classes = Guard.class.getProtectionDomain().getCodeSource().getLocation();
        URL tests = HostileTest.class.getProtectionDomain().getCodeSource().getLocation();
        URL[] places = List.of(folder.toUri().toURL(), classes, tests).toArray(URL[]::new);
        return new URLClassLoader(places, HostileTest.class.getClassLoader()) {
            @Override
            protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
                if (!name.startsWith("io.github.redisdq.")) {
                    return super.loadClass(name, resolve);
                }
                Class<?> loaded = findLoadedClass(name);
                return loaded == null ? findClass(name) : loaded;
            }
        };
    }
}
