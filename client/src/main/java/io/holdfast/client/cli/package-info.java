/**
 * The command line: {@link io.holdfast.client.cli.Main}. Each command asks the cluster through
 * {@link io.holdfast.client.admin.AdminClient} and prints a table or JSON. Errors are one or two
 * lines on standard error, with the exit codes of {@link io.holdfast.client.cli.ExitCode}.
 */
@NullMarked
package io.holdfast.client.cli;

import org.jspecify.annotations.NullMarked;
