package io.holdfast.proto.peer;

import io.holdfast.proto.peer.ClientReply.Data;
import io.holdfast.proto.peer.ClientReply.Done;
import io.holdfast.proto.peer.ClientReply.Holder;
import io.holdfast.proto.peer.ClientReply.Refusal;
import io.holdfast.proto.peer.ClientReply.Refused;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.ClientRequest.AskHolder;
import io.holdfast.proto.peer.ClientRequest.Claim;
import io.holdfast.proto.peer.ClientRequest.CloseSession;
import io.holdfast.proto.peer.ClientRequest.Flush;
import io.holdfast.proto.peer.ClientRequest.OpenSession;
import io.holdfast.proto.peer.ClientRequest.Read;
import io.holdfast.proto.peer.ClientRequest.Release;
import io.holdfast.proto.peer.ClientRequest.Write;
import io.holdfast.proto.peer.ClientRequest.Zero;
import io.holdfast.proto.peer.ReplicaMessage.Append;
import io.holdfast.proto.peer.ReplicaMessage.AppendReply;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ReplicaMessage.FetchBlock;
import io.holdfast.proto.peer.ReplicaMessage.FetchedBlock;
import io.holdfast.proto.peer.ReplicaMessage.HandOver;
import io.holdfast.proto.peer.ReplicaMessage.InstallBegin;
import io.holdfast.proto.peer.ReplicaMessage.InstallExtents;
import io.holdfast.proto.peer.ReplicaMessage.InstallReply;
import io.holdfast.proto.peer.ReplicaMessage.PromiseReply;
import io.holdfast.proto.peer.ReplicaMessage.PromiseRequest;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Random valid messages of every type, for one seed always the same. */
final class Messages {
    private Messages() {}

    private static final Map<Class<? extends PeerMessage>, Function<Random, PeerMessage>> MAKERS =
            new LinkedHashMap<>();

    private static <T extends PeerMessage> void maker(Class<T> type, Function<Random, T> maker) {
        MAKERS.put(type, maker::apply);
    }

    static {
        maker(
                PromiseRequest.class,
                r ->
                        new PromiseRequest(
                                shard(r), num(r), bool(r), bool(r), num(r), num(r), bool(r)));
        maker(
                PromiseReply.class,
                r ->
                        new PromiseReply(
                                shard(r),
                                num(r),
                                bool(r),
                                bool(r),
                                num(r),
                                Voice.of(r.nextInt(3)),
                                num(r),
                                num(r)));
        maker(Append.class, Messages::append);
        maker(
                AppendReply.class,
                r -> {
                    long durable = num(r) >> 1;
                    return new AppendReply(
                            shard(r),
                            num(r),
                            bool(r),
                            durable + r.nextInt(1000),
                            durable,
                            num(r),
                            num(r),
                            bool(r),
                            Room.of(r.nextInt(3)),
                            r.nextLong());
                });
        maker(
                InstallBegin.class,
                r -> {
                    ShardId shard = shard(r);
                    byte[] state = bytes(r, r.nextInt(300));
                    return new InstallBegin(shard, num(r), num(r), num(r), num(r), state);
                });
        maker(
                InstallExtents.class,
                r -> {
                    ShardId shard = shard(r);
                    List<Entry> extents = new ArrayList<>();
                    for (int i = r.nextInt(4); i > 0; i--) {
                        EntryKind kind = bool(r) ? EntryKind.WRITE : EntryKind.ZERO;
                        extents.add(entry(r, shard, kind, 1 + r.nextInt(99), Entry.FLAG_MOVED));
                    }
                    return new InstallExtents(
                            shard,
                            num(r),
                            num(r),
                            cursor(r),
                            cursor(r),
                            bool(r),
                            List.copyOf(extents));
                });
        maker(
                InstallReply.class,
                r -> new InstallReply(shard(r), num(r), num(r), cursor(r), bool(r)));
        maker(FetchBlock.class, r -> new FetchBlock(shard(r), num(r), pos(r), nat(r), block(r)));
        maker(
                FetchedBlock.class,
                r -> {
                    boolean zero = bool(r);
                    boolean follows = !zero && bool(r);
                    return new FetchedBlock(
                            shard(r),
                            num(r),
                            pos(r),
                            nat(r),
                            block(r),
                            num(r),
                            zero ? Nonce.NONE : nonce(r),
                            (zero || follows) && bool(r),
                            bytes(r, follows ? Blocks.SEALED_SIZE : 0));
                });
        maker(
                ScrubMessage.AskVersions.class,
                r -> {
                    int layer = nat(r) >> 1;
                    return new ScrubMessage.AskVersions(
                            shard(r),
                            pos(r),
                            new ReplicaMessage.Cursor(layer, num(r)),
                            new ReplicaMessage.Cursor(layer + 1, num(r)));
                });
        maker(ScrubMessage.Versions.class, Messages::versions);
        maker(HandOver.class, r -> new HandOver(shard(r), num(r)));
        maker(OpenSession.class, r -> new OpenSession(shard(r), nat(r), pos(r), nat(r)));
        maker(CloseSession.class, r -> new CloseSession(shard(r), nat(r), pos(r), nat(r)));
        maker(
                Claim.class,
                r -> new Claim(shard(r), nat(r), pos(r), nat(r), text(r, 1), num(r), bool(r)));
        maker(Release.class, r -> new Release(shard(r), nat(r), pos(r), nat(r), num(r)));
        maker(
                Write.class,
                r -> {
                    int count = 1 + r.nextInt(3);
                    return new Write(
                            shard(r),
                            nat(r),
                            pos(r),
                            nat(r),
                            num(r),
                            num(r),
                            nat(r),
                            block(r),
                            count,
                            nonce(r),
                            count == 1 && bool(r) ? num(r) : ClientRequest.UNCONDITIONAL,
                            bool(r),
                            bytes(r, count * Blocks.SEALED_SIZE));
                });
        maker(
                Zero.class,
                r ->
                        new Zero(
                                shard(r),
                                nat(r),
                                pos(r),
                                nat(r),
                                num(r),
                                num(r),
                                nat(r),
                                block(r),
                                1 + r.nextInt(Blocks.MAX_PER_ZERO),
                                bool(r),
                                bool(r)));
        maker(Flush.class, r -> new Flush(shard(r), nat(r), pos(r), nat(r)));
        maker(
                Read.class,
                r -> {
                    boolean own = bool(r);
                    return new Read(
                            shard(r),
                            nat(r),
                            pos(r),
                            nat(r),
                            block(r),
                            own ? 1 + r.nextInt(Blocks.MAX_PER_READ) : 1,
                            own ? ClientRequest.OWN_COPY : nat(r));
                });
        maker(AskHolder.class, r -> new AskHolder(shard(r), nat(r), pos(r)));
        maker(Done.class, r -> new Done(shard(r), nat(r), pos(r), num(r)));
        maker(
                Refused.class,
                r ->
                        new Refused(
                                shard(r),
                                nat(r),
                                pos(r),
                                pick(r, Refusal.values()),
                                nat(r),
                                num(r),
                                text(r, 0)));
        maker(
                Data.class,
                r -> {
                    long block = block(r);
                    List<Run> runs = new ArrayList<>();
                    for (int i = 1 + r.nextInt(4); i > 0; i--) {
                        int count = 1 + r.nextInt(3);
                        boolean zero = bool(r);
                        runs.add(
                                new Run(
                                        block,
                                        count,
                                        num(r),
                                        zero ? Nonce.NONE : nonce(r),
                                        bytes(r, zero ? 0 : count * Blocks.SEALED_SIZE)));
                        block += count;
                    }
                    return new Data(shard(r), nat(r), pos(r), List.copyOf(runs));
                });
        maker(Holder.class, r -> new Holder(shard(r), nat(r), pos(r), num(r), bool(r), text(r, 0)));
    }

    static Iterable<Class<? extends PeerMessage>> types() {
        return MAKERS.keySet();
    }

    static PeerMessage random(Class<?> type, Random random) {
        Function<Random, PeerMessage> maker = MAKERS.get(type);
        if (maker == null) {
            throw new AssertionError("no generator for " + type);
        }
        return maker.apply(random);
    }

    private static Append append(Random r) {
        ShardId shard = shard(r);
        long previous = num(r) >> 1;
        List<Entry> entries = new ArrayList<>();
        int count = r.nextInt(5);
        for (int i = 1; i <= count; i++) {
            EntryKind kind = pick(r, EntryKind.values());
            entries.add(entry(r, shard, kind, previous + i, 0));
        }
        return new Append(
                shard,
                num(r),
                num(r),
                previous,
                num(r),
                num(r),
                bool(r),
                r.nextLong(),
                List.copyOf(entries));
    }

    static Entry entry(Random r, ShardId shard, EntryKind kind, long sequence, int flags) {
        Entry.Builder builder =
                Entry.builder(shard, kind)
                        .at(pos(r), sequence, num(r))
                        .request(nat(r), num(r), num(r), num(r))
                        .flags(flags);
        int count = 1 + r.nextInt(2);
        switch (kind) {
            case WRITE ->
                    builder.blocks(nat(r), block(r), count)
                            .sealed(nonce(r), bytes(r, count * Blocks.SEALED_SIZE));
            case ZERO -> builder.blocks(nat(r), block(r), count);
            case CLAIM -> builder.payload(bytes(r, 13 + r.nextInt(20)));
            case NOOP, OPEN_SESSION, CLOSE_SESSION, RELEASE, POWER_LOSS -> {}
        }
        return builder.build();
    }

    private static ShardId shard(Random r) {
        return new ShardId(1 + nat(r) / 2, r.nextInt(ShardId.MAX_INDEX + 1));
    }

    private static Nonce nonce(Random r) {
        return new Nonce(1 + r.nextInt(9), 1 + nat(r) / 2, num(r));
    }

    private static Cursor cursor(Random r) {
        return new Cursor(nat(r), num(r));
    }

    private static <T> T pick(Random r, T[] from) {
        return List.of(from).get(r.nextInt(from.length));
    }

    private static boolean bool(Random r) {
        return r.nextBoolean();
    }

    /** A long from 0, of any number of bits. */
    private static long num(Random r) {
        return r.nextLong() >>> (1 + r.nextInt(63));
    }

    /** Room is left behind it for a range. */
    private static long block(Random r) {
        return num(r) >> (Blocks.SHIFT + 1);
    }

    private static long pos(Random r) {
        return 1 + (num(r) >> 1);
    }

    private static int nat(Random r) {
        return r.nextInt() >>> (1 + r.nextInt(31));
    }

    private static byte[] bytes(Random r, int length) {
        byte[] bytes = new byte[length];
        r.nextBytes(bytes);
        return bytes;
    }

    private static String text(Random r, int least) {
        int length = least + r.nextInt(40);
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < length; i++) {
            text.append("abcxyz-@é漢".charAt(r.nextInt(10)));
        }
        return text.toString();
    }

    /** Every record that a sealed type permits, however deep. */
    static Set<String> permitted(Class<?> type) {
        Set<String> names = new TreeSet<>();
        if (!type.isSealed()) {
            names.add(type.getName());
            return names;
        }
        for (Class<?> next : type.getPermittedSubclasses()) {
            names.addAll(permitted(next));
        }
        return names;
    }

    private static ScrubMessage.Versions versions(Random r) {
        int layer = nat(r) >> 1;
        long from = block(r);
        long at = from;
        List<ScrubMessage.Stretch> stretches = new ArrayList<>();
        for (int i = r.nextInt(4); i > 0; i--) {
            at += r.nextInt(3);
            boolean zero = bool(r);
            int count = 1 + r.nextInt(zero ? ScrubMessage.MAX_STRETCH_BLOCKS : 3);
            stretches.add(
                    new ScrubMessage.Stretch(
                            layer,
                            at,
                            count,
                            pos(r),
                            pos(r),
                            zero ? Nonce.NONE : nonce(r),
                            zero && bool(r),
                            zero || bool(r),
                            bytes(r, zero ? 0 : count * ScrubMessage.SUM_SIZE)));
            at += count;
        }
        return new ScrubMessage.Versions(
                shard(r),
                pos(r),
                num(r),
                new ReplicaMessage.Cursor(layer, from),
                new ReplicaMessage.Cursor(layer, at + 1 + r.nextInt(3)),
                stretches);
    }

    /** Whether two messages have equal fields, arrays by their contents. */
    static boolean same(@Nullable Object one, @Nullable Object other) {
        if (one == null || other == null) {
            return one == null && other == null;
        }
        if (one.getClass() != other.getClass()) {
            return sameLists(one, other);
        }
        return switch (one) {
            case byte[] bytes -> Arrays.equals(bytes, (byte[]) other);
            case Entry entry ->
                    Arrays.equals(entry.header(), ((Entry) other).header())
                            && Arrays.equals(entry.payload(), ((Entry) other).payload());
            case List<?> _ -> sameLists(one, other);
            case Record record -> {
                for (RecordComponent component : record.getClass().getRecordComponents()) {
                    if (!same(value(component, record), value(component, other))) {
                        yield false;
                    }
                }
                yield true;
            }
            default -> one.equals(other);
        };
    }

    private static boolean sameLists(Object one, Object other) {
        if (!(one instanceof List<?> a) || !(other instanceof List<?> b) || a.size() != b.size()) {
            return false;
        }
        for (int i = 0; i < a.size(); i++) {
            if (!same(a.get(i), b.get(i))) {
                return false;
            }
        }
        return true;
    }

    private static @Nullable Object value(RecordComponent component, Object of) {
        try {
            return component.getAccessor().invoke(of);
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(e.getMessage(), e);
        }
    }
}
