// A tree of numbers as it travels: what render/page/tree_document.py writes, name for name.

export type NodeParts = {
  name: string;
  value: number | null;
  note: string;
  unit: string; // numbers of different units are not compared
  is_rest: boolean;
  is_sum: boolean; // of the nodes below it
  children: NodeParts[];
};

export type TreeParts = { title: string; caption: string; verdict: string; root: NodeParts };

export type TreePage = {
  kind: 'tree';
  language: string;
  languages: Record<string, Record<string, string>>;
  trees: Record<string, TreeParts>; // by language
};
