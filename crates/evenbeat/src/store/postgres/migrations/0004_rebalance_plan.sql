-- Rebalance plans that can still be applied, by any node.
CREATE TABLE rebalance_plan (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    caller text NOT NULL,
    made_at bigint NOT NULL,
    plan text NOT NULL
);
