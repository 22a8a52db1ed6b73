-- The keyword leg: the postings of each term, packed by blocks of documents. No score is stored, for the number of
-- documents, their mean length and the frequencies of terms, all counted for each tenant, change with every write.

CREATE TABLE keyword_documents (
    tenant text NOT NULL DEFAULT current_setting('rag_kit.tenant'),
    n bigint NOT NULL,      -- of the chunk
    length integer NOT NULL,
    terms text NOT NULL,    -- a term and its count on each line: what is taken back when the text changes
    PRIMARY KEY (tenant, n)
);

CREATE TABLE keyword_postings (
    tenant text NOT NULL DEFAULT current_setting('rag_kit.tenant'),
    term text COLLATE "C" NOT NULL,
    block bigint NOT NULL,                   -- numbers of chunks divided by the size of a block
    packed bytea STORAGE EXTERNAL NOT NULL,  -- eight bytes a posting, in no order
    PRIMARY KEY (tenant, term, block)
);

CREATE TABLE keyword_counts (
    tenant text PRIMARY KEY DEFAULT current_setting('rag_kit.tenant'),
    documents bigint NOT NULL,
    tokens bigint NOT NULL,
    generation bigint NOT NULL   -- of the store, which the leg has followed
);

ALTER TABLE keyword_documents ENABLE ROW LEVEL SECURITY;
ALTER TABLE keyword_documents FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON keyword_documents USING (tenant = current_setting('rag_kit.tenant'));
ALTER TABLE keyword_postings ENABLE ROW LEVEL SECURITY;
ALTER TABLE keyword_postings FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON keyword_postings USING (tenant = current_setting('rag_kit.tenant'));
ALTER TABLE keyword_counts ENABLE ROW LEVEL SECURITY;
ALTER TABLE keyword_counts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON keyword_counts USING (tenant = current_setting('rag_kit.tenant'));
