package io.holdfast.node.coordination;

import io.atomix.primitive.PrimitiveBuilder;
import io.atomix.primitive.PrimitiveManagementService;
import io.atomix.primitive.PrimitiveType;
import io.atomix.primitive.config.PrimitiveConfig;
import io.atomix.primitive.event.EventType;
import io.atomix.primitive.event.PrimitiveEvent;
import io.atomix.primitive.operation.OperationId;
import io.atomix.primitive.service.BackupInput;
import io.atomix.primitive.service.BackupOutput;
import io.atomix.primitive.service.Commit;
import io.atomix.primitive.service.PrimitiveService;
import io.atomix.primitive.service.ServiceConfig;
import io.atomix.primitive.service.ServiceContext;
import io.atomix.primitive.session.Session;
import io.atomix.primitive.session.SessionId;
import io.atomix.utils.serializer.Namespaces;
import io.atomix.utils.serializer.Serializer;
import io.atomix.utils.time.WallClockTimestamp;
import io.holdfast.node.coordination.CatalogueCodec.MalformedValueException;
import io.holdfast.node.coordination.CatalogueCodec.UnknownFormatException;
import io.holdfast.proto.catalogue.Change;
import java.nio.ByteBuffer;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * {@link CatalogueState} as Atomix' replicated service. Atomix sees byte arrays only.
 *
 * <pre>
 * operation  kind     value                         answer
 * change     command  encoded change                encoded result
 * restore    command  encoded catalogue             encoded result
 * read       query    version known, 8 bytes        encoded catalogue; empty: that is the version
 * </pre>
 *
 * <p>An event {@code changed} with the new version (8 bytes) goes to every session. It may arrive
 * twice or not at all, so it is no more than a reason to read.
 *
 * <p>D1: sessions decide nothing here. They are told of changes, in whatever order, and their
 * coming and going leaves the state as it is; terms are the epochs in the changes themselves.
 *
 * <p>On Atomix' state thread.
 */
final class CatalogueService implements PrimitiveService {
    static final OperationId CHANGE = OperationId.command("change");
    static final OperationId RESTORE = OperationId.command("restore");
    static final OperationId READ = OperationId.query("read");
    static final EventType CHANGED = EventType.from("changed");

    private static final byte[] UNCHANGED = {};
    private static final byte[] NO_VALUE = {};

    private final Consumer<String> onUnreadable;
    private final Serializer serializer = Serializer.using(Namespaces.BASIC);
    private final TreeMap<Long, Session<?>> sessions = new TreeMap<>();
    private final CatalogueState state = new CatalogueState();

    /**
     * Index of the last command applied. Atomix takes a snapshot's index a moment apart from its
     * content, so that after a restore a command may come again that the snapshot contains.
     */
    private long appliedIndex;

    private boolean unreadable;

    private CatalogueService(Consumer<String> onUnreadable) {
        this.onUnreadable = onUnreadable;
    }

    @Override
    public void init(ServiceContext context) {}

    @Override
    public void tick(WallClockTimestamp timestamp) {}

    @Override
    public Serializer serializer() {
        return serializer;
    }

    @Override
    public byte[] apply(Commit<byte[]> commit) {
        String operation = commit.operation().id();
        byte @Nullable [] sent = commit.value();
        byte[] value = sent == null ? NO_VALUE : sent;
        if (operation.equals(READ.id())) {
            return read(value);
        }
        if (unreadable) {
            return CatalogueCodec.encode(state.refused("this node must be upgraded"));
        }
        if (commit.index() <= appliedIndex) {
            return CatalogueCodec.encode(state.refused("applied before"));
        }
        long before = state.version();
        Change.Result result = change(operation, value);
        appliedIndex = commit.index();
        if (state.version() != before) {
            byte[] version = ByteBuffer.allocate(Long.BYTES).putLong(state.version()).array();
            PrimitiveEvent event = PrimitiveEvent.event(CHANGED, version);
            sessions.values().forEach(session -> session.publish(event));
        }
        return CatalogueCodec.encode(result);
    }

    private Change.Result change(String operation, byte[] value) {
        try {
            if (operation.equals(CHANGE.id())) {
                return state.apply(CatalogueCodec.decodeChange(value));
            }
            if (operation.equals(RESTORE.id())) {
                return state.merge(CatalogueCodec.decodeCatalogue(value));
            }
            return unreadable("operation " + operation + " is unknown");
        } catch (UnknownFormatException e) {
            return unreadable(String.valueOf(e.getMessage()));
        } catch (MalformedValueException e) {
            return state.refused("malformed: " + e.getMessage());
        }
    }

    /**
     * A newer node wrote what this one cannot apply. Skipping it would let the replicas part for
     * good, so this one stops before its state is asked for or put into a snapshot again.
     */
    private Change.Result unreadable(String what) {
        unreadable = true;
        onUnreadable.accept(what);
        return state.refused(what);
    }

    private byte[] read(byte[] known) {
        boolean same =
                known.length == Long.BYTES && ByteBuffer.wrap(known).getLong() == state.version();
        return same ? UNCHANGED : CatalogueCodec.encode(state.catalogue());
    }

    @Override
    public void backup(BackupOutput output) {
        if (unreadable) {
            throw new IllegalStateException("no snapshot: this node must be upgraded");
        }
        byte[] bytes = CatalogueCodec.encode(state.catalogue());
        output.writeLong(appliedIndex).writeInt(bytes.length).writeBytes(bytes);
    }

    @Override
    public void restore(BackupInput input) {
        long index = input.readLong();
        byte[] bytes = input.readBytes(input.readInt());
        try {
            state.set(CatalogueCodec.decodeCatalogue(bytes));
            appliedIndex = index;
        } catch (MalformedValueException e) {
            unreadable("snapshot: " + e.getMessage());
        }
    }

    @Override
    @SuppressWarnings("rawtypes") // as Atomix declares it
    public void register(Session session) {
        sessions.put(session.sessionId().id(), (Session<?>) session);
    }

    @Override
    public void expire(SessionId session) {
        sessions.remove(session.id());
    }

    @Override
    public void close(SessionId session) {
        sessions.remove(session.id());
    }

    /** How Atomix finds the service. Its builders and configurations are not used. */
    @SuppressWarnings("rawtypes") // nothing to fill its type parameters with
    static final class Type implements PrimitiveType {
        private static final String NAME = "holdfast-catalogue";

        private final Consumer<String> onUnreadable;

        /**
         * Made once per node.
         *
         * @param onUnreadable told, on Atomix' thread, why this node cannot go on
         */
        Type(Consumer<String> onUnreadable) {
            this.onUnreadable = onUnreadable;
        }

        @Override
        public String name() {
            return NAME;
        }

        @Override
        public PrimitiveService newService(ServiceConfig config) {
            return new CatalogueService(onUnreadable);
        }

        @Override
        public PrimitiveConfig newConfig() {
            throw new UnsupportedOperationException();
        }

        @Override
        public PrimitiveBuilder newBuilder(
                String name, PrimitiveConfig config, PrimitiveManagementService service) {
            throw new UnsupportedOperationException();
        }
    }
}
