package io.holdfast.node;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.encoder.PatternLayoutEncoder;
import ch.qos.logback.classic.spi.Configurator;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.ConsoleAppender;
import ch.qos.logback.core.spi.ContextAwareBase;
import org.slf4j.Logger;

/**
 * A node's log: one line per state change, to standard output. {@code HOLDFAST_LOG_LEVEL} sets how
 * much Holdfast itself says; the libraries are quiet unless something is wrong.
 *
 * <p>Code and not a file, because reading a file brings an XML parser into every start. A file
 * named by {@code logback.configurationFile}, or the tests', is taken instead.
 */
public final class LogSetup extends ContextAwareBase implements Configurator {
    private static final String PATTERN =
            "%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX,UTC} %-5level %logger{0} - %msg%n";

    @Override
    public ExecutionStatus configure(LoggerContext context) {
        if (System.getProperty("logback.configurationFile") != null
                || LogSetup.class.getResource("/logback-test.xml") != null) {
            return ExecutionStatus.INVOKE_NEXT_IF_ANY;
        }
        PatternLayoutEncoder encoder = new PatternLayoutEncoder();
        encoder.setContext(context);
        encoder.setPattern(PATTERN);
        encoder.start();
        ConsoleAppender<ILoggingEvent> out = new ConsoleAppender<>();
        out.setContext(context);
        out.setName("out");
        out.setEncoder(encoder);
        out.start();
        var root = context.getLogger(Logger.ROOT_LOGGER_NAME);
        root.setLevel(Level.WARN);
        root.addAppender(out);
        context.getLogger("io.holdfast")
                .setLevel(Level.toLevel(System.getenv("HOLDFAST_LOG_LEVEL"), Level.INFO));
        // Atomix warns of every member that cannot be reached; our own links say the same once.
        context.getLogger("io.atomix").setLevel(Level.ERROR);
        return ExecutionStatus.DO_NOT_INVOKE_NEXT_IF_ANY;
    }
}
