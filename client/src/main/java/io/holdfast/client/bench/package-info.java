/**
 * The benchmark that {@code holdfast bench} runs: stock fio against a volume, and the processor
 * time that the nodes spend on it. Depends on the JDK and Jackson only.
 */
@NullMarked
package io.holdfast.client.bench;

import org.jspecify.annotations.NullMarked;
