/**
 * The product as people use it: real node processes started by the launcher, stock NBD clients, and
 * a hand that kills, stops and wipes nodes. Start at {@link io.holdfast.integration.LocalCluster}.
 */
package io.holdfast.integration;
