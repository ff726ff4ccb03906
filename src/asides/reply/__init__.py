"""A reply on its way: records between two dialects, and the splitter that makes events of what an upstream sent."""
