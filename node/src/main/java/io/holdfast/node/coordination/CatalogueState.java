package io.holdfast.node.coordination;

import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Change;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The catalogue as a state machine. The same changes in the same order give the same state and the
 * same answers on every node, whatever the changes contain: what is malformed is refused with a
 * reason, never thrown. Not thread-safe.
 */
final class CatalogueState {
    /** Most replicas of a shard. */
    static final int MAX_REPLICAS = 7;

    /** Most characters of a wrapped key; AES key wrap of 32 bytes gives 56. */
    static final int MAX_WRAPPED_KEY_CHARS = 256;

    /** Most characters of an incarnation. */
    static final int MAX_INCARNATION_CHARS = 128;

    /** Longest wait of a request for a majority that a volume may ask for: a day. */
    static final int MAX_TIMEOUT_SECONDS = 86_400;

    /**
     * A volume that would make the encoded catalogue larger is refused. Half of {@link
     * CatalogueCodec#MAX_VALUE_BYTES}: leaders and epochs grow in digits afterwards, by at most 26
     * bytes a shard, and the whole must still fit one value for {@link #merge}.
     */
    static final int MAX_CATALOGUE_BYTES = CatalogueCodec.MAX_VALUE_BYTES / 2;

    private static final Pattern NAME = Pattern.compile(Volume.NAME_PATTERN);

    private final TreeMap<String, Volume> volumes = new TreeMap<>();
    private final int maxCatalogueBytes;
    private long version;
    private int nextVolume = 1;

    CatalogueState() {
        this(MAX_CATALOGUE_BYTES);
    }

    CatalogueState(int maxCatalogueBytes) {
        this.maxCatalogueBytes = maxCatalogueBytes;
    }

    Catalogue catalogue() {
        return new Catalogue(version, nextVolume, List.copyOf(volumes.values()));
    }

    long version() {
        return version;
    }

    /** Becomes exactly {@code catalogue}, which another state machine gave out. */
    void set(Catalogue catalogue) {
        volumes.clear();
        for (Volume volume : catalogue.volumes()) {
            volumes.put(volume.name(), volume);
        }
        version = catalogue.version();
        nextVolume = catalogue.nextVolume();
    }

    Change.Result apply(Change change) {
        return switch (change) {
            case Change.CreateVolume c -> create(c.volume());
            case Change.MarkReady c -> markReady(c);
            case Change.DeleteVolume c -> delete(c);
            case Change.ClaimLeader c -> claim(c);
        };
    }

    private Change.Result create(Volume asked) {
        Optional<String> problem = problem(asked);
        if (problem.isPresent()) {
            return refused(problem.get());
        }
        if (volumes.containsKey(asked.name())) {
            return refused("a volume " + asked.name() + " exists");
        }
        if (nextVolume == Integer.MAX_VALUE) {
            return refused("volume numbers are used up");
        }
        Volume volume = asked.with(nextVolume, Volume.State.CREATING);
        volumes.put(volume.name(), volume);
        if (CatalogueCodec.encode(catalogue()).length > maxCatalogueBytes) {
            volumes.remove(volume.name());
            return refused("the catalogue is full (" + maxCatalogueBytes + " bytes)");
        }
        nextVolume++;
        version++;
        return new Change.Result(true, version, volume.number(), "");
    }

    private Change.Result markReady(Change.MarkReady change) {
        Volume volume = byNumber(change.volume());
        if (volume == null) {
            return refused("no volume " + change.volume());
        }
        if (volume.state() != Volume.State.READY) {
            replace(volume.with(volume.number(), Volume.State.READY));
        }
        return applied();
    }

    private Change.Result delete(Change.DeleteVolume change) {
        Volume volume = byNumber(change.volume());
        if (volume == null) {
            return refused("no volume " + change.volume());
        }
        if (!volume.name().equals(change.name())) {
            return refused(
                    "volume "
                            + volume.number()
                            + " is "
                            + volume.name()
                            + ", not "
                            + change.name());
        }
        volumes.remove(volume.name());
        version++;
        return applied();
    }

    private Change.Result claim(Change.ClaimLeader change) {
        Volume volume = byNumber(change.volume());
        if (volume == null) {
            return refused("no volume " + change.volume());
        }
        if (change.shard() < 0 || change.shard() >= volume.shards().size()) {
            return refused("no shard " + change.volume() + "/" + change.shard());
        }
        if (change.incarnation().length() > MAX_INCARNATION_CHARS) {
            return refused("incarnation longer than " + MAX_INCARNATION_CHARS);
        }
        Volume.Shard shard = volume.shards().get(change.shard());
        if (!shard.replicas().contains(change.node())) {
            return refused(
                    "node "
                            + change.node()
                            + " has no replica of "
                            + volume.shardId(shard.index()));
        }
        if (change.epoch() <= shard.epoch()) {
            return refused(
                    "epoch "
                            + change.epoch()
                            + " is not above "
                            + shard.epoch()
                            + " of node "
                            + shard.leader());
        }
        List<Volume.Shard> shards = new ArrayList<>(volume.shards());
        shards.set(
                shard.index(),
                new Volume.Shard(shard.index(), shard.replicas(), change.node(), change.epoch()));
        replace(volume.with(shards));
        return applied();
    }

    /**
     * Takes in a catalogue that a node saved and this cluster has forgotten, because Atomix lost
     * the end of its log with the power (D3).
     *
     * <p>No effect unless {@code saved} is at least as new as this state and differs from it. If
     * nothing was changed here since the loss, the outcome is {@code saved} itself. Otherwise both
     * histories are joined under a version above both, volume by volume:
     *
     * <ul>
     *   <li>In both under one name: the saved definition, for each shard the leader of the higher
     *       epoch, READY if either says so.
     *   <li>Only saved: comes back if its number was not given out here yet; else it was deleted
     *       here, or its number was given again, and stays away.
     *   <li>Only here: stays, even if the saved history may have deleted it: a deleted volume that
     *       shows up again is deleted again, but one that is dropped wrongly is lost.
     * </ul>
     */
    Change.Result merge(Catalogue saved) {
        Optional<String> problem = problem(saved);
        if (problem.isPresent()) {
            return refused(problem.get());
        }
        Catalogue here = catalogue();
        if (saved.version() < version || saved.equals(here)) {
            return applied();
        }
        TreeMap<String, Volume> merged = new TreeMap<>(volumes);
        for (Volume theirs : saved.volumes()) {
            Volume sameName = volumes.get(theirs.name());
            if (sameName != null && sameName.number() == theirs.number()) {
                merged.put(theirs.name(), join(sameName, theirs));
            } else if (sameName == null && theirs.number() >= nextVolume) {
                merged.put(theirs.name(), theirs);
            }
        }
        boolean sameAsSaved = List.copyOf(merged.values()).equals(saved.volumes());
        boolean onlyForgot =
                sameAsSaved && saved.version() > version && saved.nextVolume() >= nextVolume;
        set(
                new Catalogue(
                        onlyForgot ? saved.version() : saved.version() + 1,
                        Math.max(nextVolume, saved.nextVolume()),
                        List.copyOf(merged.values())));
        return applied();
    }

    private static Volume join(Volume here, Volume saved) {
        List<Volume.Shard> shards = new ArrayList<>();
        for (Volume.Shard shard : saved.shards()) {
            Volume.Shard ours =
                    shard.index() < here.shards().size() ? here.shards().get(shard.index()) : shard;
            boolean oursLeads =
                    ours.epoch() > shard.epoch() && shard.replicas().contains(ours.leader());
            shards.add(
                    new Volume.Shard(
                            shard.index(),
                            shard.replicas(),
                            oursLeads ? ours.leader() : shard.leader(),
                            oursLeads ? ours.epoch() : shard.epoch()));
        }
        boolean ready = here.state() == Volume.State.READY || saved.state() == Volume.State.READY;
        return saved.with(saved.number(), ready ? Volume.State.READY : Volume.State.CREATING)
                .with(shards);
    }

    private @Nullable Volume byNumber(int number) {
        for (Volume volume : volumes.values()) {
            if (volume.number() == number) {
                return volume;
            }
        }
        return null;
    }

    private void replace(Volume volume) {
        volumes.put(volume.name(), volume);
        version++;
    }

    private Change.Result applied() {
        return new Change.Result(true, version, 0, "");
    }

    Change.Result refused(String reason) {
        return new Change.Result(false, version, 0, reason);
    }

    /** Why a catalogue cannot be one that this state machine gave out; empty if it can. */
    static Optional<String> problem(Catalogue catalogue) {
        if (catalogue.version() < 0 || catalogue.nextVolume() < 1) {
            return Optional.of(
                    "version " + catalogue.version() + ", next volume " + catalogue.nextVolume());
        }
        Set<Integer> numbers = new HashSet<>();
        String last = "";
        for (Volume volume : catalogue.volumes()) {
            Optional<String> problem = problem(volume);
            if (problem.isPresent()) {
                return problem;
            }
            if (volume.name().compareTo(last) <= 0) {
                return Optional.of("volume " + volume.name() + " after " + last);
            }
            if (volume.number() < 1
                    || volume.number() >= catalogue.nextVolume()
                    || !numbers.add(volume.number())) {
                return Optional.of(
                        "volume number "
                                + volume.number()
                                + " of "
                                + volume.name()
                                + ", next is "
                                + catalogue.nextVolume());
            }
            last = volume.name();
        }
        return Optional.empty();
    }

    /** Why a volume is not valid, number apart; empty if it is. */
    static Optional<String> problem(Volume volume) {
        if (!NAME.matcher(volume.name()).matches()) {
            return Optional.of("a volume's name must match " + Volume.NAME_PATTERN);
        }
        if (volume.sizeBytes() < Blocks.SIZE
                || volume.sizeBytes() > Volume.MAX_SIZE_BYTES
                || volume.sizeBytes() % Blocks.SIZE != 0) {
            return Optional.of(
                    "size "
                            + volume.sizeBytes()
                            + " is not a multiple of "
                            + Blocks.SIZE
                            + " up to "
                            + Volume.MAX_SIZE_BYTES);
        }
        if (volume.stripeBytes() < Blocks.SIZE
                || volume.stripeBytes() > Volume.MAX_SIZE_BYTES
                || volume.stripeBytes() % Blocks.SIZE != 0) {
            return Optional.of(
                    "stripe " + volume.stripeBytes() + " is not a multiple of " + Blocks.SIZE);
        }
        if (volume.timeoutSeconds() < 1 || volume.timeoutSeconds() > MAX_TIMEOUT_SECONDS) {
            return Optional.of(
                    "time-out " + volume.timeoutSeconds() + " is not in 1.." + MAX_TIMEOUT_SECONDS);
        }
        if (volume.layer() < 0 || volume.keyId() < 1) {
            return Optional.of("layer " + volume.layer() + ", key id " + volume.keyId());
        }
        if (!isWrappedKey(volume.wrappedKey())) {
            // Not quoted: it should not be in a log, wrapped or not.
            return Optional.of("the wrapped key is not base64 of a wrapped key's length");
        }
        return problem(volume.shards());
    }

    private static Optional<String> problem(List<Volume.Shard> shards) {
        if (shards.isEmpty() || shards.size() > ShardId.MAX_INDEX + 1) {
            return Optional.of(shards.size() + " shards are not in 1.." + (ShardId.MAX_INDEX + 1));
        }
        for (int i = 0; i < shards.size(); i++) {
            Volume.Shard shard = shards.get(i);
            List<Integer> replicas = shard.replicas();
            if (shard.index() != i) {
                return Optional.of("shard " + shard.index() + " in place " + i);
            }
            if (replicas.isEmpty()
                    || replicas.size() > MAX_REPLICAS
                    || new HashSet<>(replicas).size() != replicas.size()
                    || replicas.stream().anyMatch(node -> node < 1)) {
                return Optional.of(
                        "replicas "
                                + replicas
                                + " of shard "
                                + i
                                + " are not 1.."
                                + MAX_REPLICAS
                                + " different nodes");
            }
            if (shard.epoch() < 0 || (shard.leader() != 0 && !replicas.contains(shard.leader()))) {
                return Optional.of(
                        "leader "
                                + shard.leader()
                                + " with epoch "
                                + shard.epoch()
                                + " of shard "
                                + i
                                + " with replicas "
                                + replicas);
            }
        }
        return Optional.empty();
    }

    private static boolean isWrappedKey(String key) {
        if (key.isEmpty() || key.length() > MAX_WRAPPED_KEY_CHARS) {
            return false;
        }
        try {
            Base64.getDecoder().decode(key);
            return true;
        } catch (IllegalArgumentException e) {
            return false;
        }
    }
}
