-- Vectors to search: those of the table vectors at length 1 and half precision, whose inner product is the cosine.
-- The HNSW index over those of a tenant is made once it has more of them than are quickly read whole.
CREATE TABLE nearest (
    n bigint, model text COLLATE "C" NOT NULL, unit halfvec NOT NULL, generation bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('rag_kit.tenant'),
    PRIMARY KEY (tenant, n), FOREIGN KEY (tenant, n) REFERENCES vectors (tenant, n) ON DELETE CASCADE);
-- up to this many bytes a row stays in one piece, so that reading many needs no second table
ALTER TABLE nearest SET (toast_tuple_target = 8160);
ALTER TABLE nearest ENABLE ROW LEVEL SECURITY;
ALTER TABLE nearest FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON nearest USING (tenant = current_setting('rag_kit.tenant'));
