package io.holdfast.client.cli;

import java.util.ArrayList;
import java.util.List;

/** Rows of text in columns as wide as their widest cell. */
final class Table {
    private final List<List<String>> rows = new ArrayList<>();

    Table(String... header) {
        rows.add(List.of(header));
    }

    void row(Object... cells) {
        if (cells.length != rows.getFirst().size()) {
            throw new IllegalArgumentException(
                    cells.length + " cells for " + rows.getFirst().size() + " columns");
        }
        List<String> row = new ArrayList<>();
        for (Object cell : cells) {
            row.add(String.valueOf(cell));
        }
        rows.add(row);
    }

    /** Lines with line ends. */
    String text() {
        int[] widths = new int[rows.getFirst().size()];
        for (List<String> row : rows) {
            for (int i = 0; i < widths.length; i++) {
                widths[i] = Math.max(widths[i], row.get(i).length());
            }
        }
        StringBuilder text = new StringBuilder();
        for (List<String> row : rows) {
            StringBuilder line = new StringBuilder();
            for (int i = 0; i < widths.length; i++) {
                line.append(row.get(i)).repeat(' ', widths[i] - row.get(i).length() + 2);
            }
            text.append(line.toString().stripTrailing()).append('\n');
        }
        return text.toString();
    }
}
